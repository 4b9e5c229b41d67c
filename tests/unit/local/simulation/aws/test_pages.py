from typing import Any

from relaunch_local.simulation.aws.pages import in_pages, in_small_queries


class Client:
    """A client of ECS with five tasks, which answers three of them in a page."""

    def __init__(self) -> None:
        self.tasks = [f"task-{number}" for number in range(5)]
        self.limits: list[int] = []

    def list_tasks(self, **parameters: Any) -> Any:
        start = int(parameters.get("nextToken", 0))
        more = {"nextToken": str(start + 3)} if start + 3 < len(self.tasks) else {}
        return {"taskArns": self.tasks[start : start + 3], **more}

    def describe_tasks(self, **parameters: Any) -> Any:
        return parameters

    def query(self, **parameters: Any) -> Any:
        self.limits.append(parameters["Limit"])
        return {"Items": []}


def read(client: Any) -> list[list[str]]:
    pages = []
    token = None
    while True:
        page = client.list_tasks(**({"nextToken": token} if token else {}))
        pages.append(page["taskArns"])
        token = page.get("nextToken")
        if not token:
            return pages


def test_a_list_comes_in_pages_of_the_size_at_most() -> None:
    assert read(in_pages(Client(), 2)) == [["task-0", "task-1"], ["task-2", "task-3"], ["task-4"]]


def test_without_a_size_pages_are_those_of_the_client() -> None:
    client = Client()

    assert in_pages(client, None) is client


def test_a_page_that_is_asked_for_again_is_the_same() -> None:
    paged = in_pages(Client(), 2)
    token = paged.list_tasks()["nextToken"]

    first, second = (paged.list_tasks(nextToken=token)["taskArns"] for _ in range(2))
    assert first == second == ["task-2", "task-3"]


def test_what_ends_between_two_pages_takes_nothing_else_from_them() -> None:
    client = Client()
    paged = in_pages(client, 2)
    token = paged.list_tasks()["nextToken"]
    del client.tasks[0]

    assert paged.list_tasks(nextToken=token)["taskArns"] == ["task-2", "task-3"]


def test_other_actions_are_the_clients() -> None:
    assert in_pages(Client(), 2).describe_tasks(tasks=["a"]) == {"tasks": ["a"]}


def test_a_query_has_the_smaller_of_both_limits() -> None:
    client = Client()
    small = in_small_queries(3, lambda given: given, client)
    for limit in (1, 9):
        small.query(Limit=limit)
    small.query()

    assert client.limits == [1, 3, 3]
    assert in_small_queries(None, lambda given: given, client) is client

"""What the style of the code refuses (code_style.py), and that there is none of it but what its list allows."""

import pytest

from architecture import code_style
from architecture.code_style import BOUND_TOGETHER, boolean_sets, bound_together, chained_conditionals, refused_words

# Three booleans of which one at most makes sense are one enum. These are true or false each for itself.
INDEPENDENT_BOOLEANS = {
    "Capabilities": "each is something that a target can, whatever else it can",
    "CapacityFailure": "stored by these names; one that was refuted is one of the others too",
    "Decision": "parts of one transaction, each with the job or without it",
    "LaunchRefused": "one error names revision and provider, and each may come again after one without an answer",
    "Machine": "stored facts: it takes no more jobs, EC2 gave no reason yet, somebody is alarmed",
    "NodeObservation": "ECS says the status of a node and the connection of its agent apart",
    "NodeSeen": "as NodeObservation, of which it is made",
    "Placement": "stored facts: its task is gone, it takes every device, ECS owns the host, the price is a limit",
    "PushPayload": "fields of GitHub's event, each of which it sets or not",
    "Requirements": "a definition for Neuron devices and a task definition with a shared GPU require both",
    "TaskObservation": "a queue holds it, its agent is away, its peers never came: a target tells each apart",
    "_Facts": "whether it was starting, had a node, and waited for other nodes are facts of one stop",
    "_next_placement": "no room, a machine that ran nothing and a device that another task took come together",
    "next_try": "how long the job has trained, what a try costs and what is up now are looked up apart",
    "HostPlan": "each is a fault of its own of a host, and a scenario combines them",
    "Inputs": "inputs of the action, which a workflow sets one by one",
    "Instance": "its agent, its network and its status check fail apart, and what was true at its end is kept",
    "MachineScenario": "a watchdog, a quota that is close and how EC2 says its errors, drawn one beside the other",
    "Options": "options of a run of the simulation, combined at will",
    "PlanBasis": "offline plans have all types, which are planned online too, with machines of the stack's own or not",
    "ProviderFacts": "four settings of a capacity provider, each of which is checked",
    "Recipe": "a program that ignores SIGTERM saves when it leaves after a notice",
    "Scenario": "what a company of the simulation has and what happens to it, drawn one beside the other",
    "Seen": "the agent, the tasks and the accelerators are looked at apart",
    "StopFacts": "everything that happened to one task, often several things",
    **dict.fromkeys(("acs_profile", "apply", "init", "plan"), "options of a command, combined at will"),
    "find_planner": "options of `relaunch plan`, combined at will",
    "idle_costs": "the parts that a deployment may have, one beside the other",
}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def told(job): ...", "told"),
        ('"""Somebody is TOLD of it."""', "told"),
        ("# the condition by\n    # which it ends", "by which"),
        ("What\nof the job is left", "what of"),
        ("def look_again_at(job): ...", "look_again"),
        ("class LookAgain: ...", "look_again"),
        ("machines.attend_machine(1)", "attend"),
        ("Event.AttendMachine", "attend"),
    ],
)
def test_a_word_is_refused_in_code_and_prose(text, word):
    assert refused_words(text) == {word: 1}


@pytest.mark.parametrize("text", ["is_told = retold", "action", "look against", "an attendant", "Doubt it", "by what"])
def test_what_only_resembles_a_refused_word_is_accepted(text):
    assert refused_words(text) == {}


@pytest.mark.parametrize(
    "source",
    [
        "job, now = load(), clock.now()",
        "def f():\n    if a:\n        self.a, self.b = (\n            1,\n            2,\n        )",
        "(a, b), c = (1, 2), 3",
    ],
)
def test_two_facts_on_one_line_are_refused(source):
    assert len(bound_together(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "first, second = pair()",
        "a, b = b, a",
        "before, memory = memory, remember(memory)",
        "save, store.save = store.save, Mock()",
        "for a, b in ((1, 2), (3, 4)): ...",
        "pair = 1, 2",
    ],
)
def test_what_belongs_together_is_bound_together(source):
    assert bound_together(source) == []


def test_a_conditional_expression_within_another_one_is_refused():
    assert chained_conditionals("x = 1 if a else 2 if b else 3\ny = (1 if a else 2) if b else 3") == [1, 2]
    assert chained_conditionals("x = 1 if a else 2\ny = [1 if b else 2 for b in (a if c else d)]") == []


def test_three_booleans_are_refused_among_fields_and_parameters():
    fields = "class Stop:\n    is_a: bool\n    is_b: bool = False\n    is_c: bool | None = None"
    parameters = "def stop(is_a: Annotated[bool, Option()], /, *, is_b: bool, is_c: bool = False): ..."

    assert boolean_sets(f"{fields}\n{parameters}") == ["Stop", "stop"]
    assert boolean_sets("class Stop:\n    is_a: bool\n    is_b: bool\n    why: str\ndef stop(is_a: bool): ...") == []


def test_the_list_shrinks_and_moves_but_does_not_grow():
    before = {"told": {"a.py": 2, "b.py": 1}}

    assert code_style.grown(before, {"told": {"c.py": 3}}) == []
    assert code_style.grown(before, {"told": {"a.py": 4}}) == ["told: 4, and 3 before"]
    assert code_style.grown(before, {"anew": {"a.py": 1}}) == ["anew: 1, and 0 before"]


def test_the_list_says_what_is_there():
    counts = code_style.count()
    more = code_style.grown(code_style.read_list(), counts)

    assert more == [], "say it otherwise"
    assert code_style.LIST.read_text("utf-8") == code_style.render(counts), (
        "there is less, or elsewhere: make style-list"
    )


def test_the_product_has_no_chained_conditionals_no_two_facts_on_a_line_and_no_enums_of_booleans():
    chained, together, booleans = {}, {}, set()
    for path, source in code_style.sources(*code_style.PRODUCT):
        booleans |= set(boolean_sets(source))
        chained[path] = chained_conditionals(source)
        together[path] = bound_together(source)

    assert {path: lines for path, lines in chained.items() if lines} == {}
    assert {path: lines for path, lines in together.items() if lines} == {}, BOUND_TOGETHER
    assert booleans == set(INDEPENDENT_BOOLEANS)

from relaunch_cli.repository_setup.findings import BucketEvents, FileChange, Webhook


def test_the_difference_of_a_file_is_a_unified_diff():
    changed = FileChange("a.yaml", "one\ntwo\n", "one\nthree\n")

    assert changed.is_needed
    assert changed.difference.splitlines() == ["--- a.yaml", "+++ a.yaml", "@@ -1,2 +1,2 @@", " one", "-two", "+three"]
    assert FileChange("a.yaml", None, "one\n").difference.startswith("--- /dev/null\n+++ a.yaml")
    assert not FileChange("a.yaml", "one\n", "one\n").is_needed


def test_other_notifications_of_a_bucket_are_counted():
    events = BucketEvents("acme", {"QueueConfigurations": [{}, {}], "TopicConfigurations": [{}]})

    assert (events.is_on, events.others) == (False, 3)
    assert BucketEvents("acme", {"EventBridgeConfiguration": {}}).is_on


def test_a_webhook_that_cannot_be_made_is_not_to_be_made():
    assert Webhook("acme/vision", "https://hook", ("push",)).is_needed
    assert not Webhook("acme/vision", "https://hook", ("push",), obstacle="gh is not installed").is_needed
    assert not Webhook("acme/vision", "https://hook", (), id=1).is_needed

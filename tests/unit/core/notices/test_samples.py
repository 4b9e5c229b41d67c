"""Notices with which a person tries a receiver out."""

import pytest

from fakes.builders import NOW
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.notices.samples import sample_notice
from relaunch.core.notices.text import write_text


@pytest.mark.parametrize("kind", NoticeKind)
def test_each_kind_has_one_that_says_it_is_a_test(kind: NoticeKind) -> None:
    notice = sample_notice(kind, 1, NOW)

    assert notice.kind is kind
    assert write_text(notice).title.startswith("Test: test-00000000 ")
    assert notice.notice_id != sample_notice(kind, 2, NOW).notice_id

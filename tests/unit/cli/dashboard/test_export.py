"""A page in one file that names no address and loads nothing."""

import base64
import hashlib
import re

import pytest

from relaunch_cli.dashboard.export import LEFT_OUT, ExportError, export_page

ADDRESS = re.compile(r"[a-z]+://|url\(|\b(?:src|href|action)\s*=|@import", re.IGNORECASE)


def test_a_page_has_its_styles_and_a_policy_that_allows_these_alone():
    style = "p { color: red; }\n.b::after { content: '>' }"

    page = export_page("<p class='a'>hello</p>", style.split("\n"), "job <1>")

    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert page.startswith("<!doctype html>")
    assert f"<style>{style}</style>" in page
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" in page
    assert '<meta name="referrer" content="no-referrer">' in page
    assert "<title>job &lt;1&gt;</title>" in page
    assert "<p class='a'>hello</p>" in page
    assert ADDRESS.findall(page) == []


def test_addresses_in_texts_and_titles_are_left_out_and_other_places_stay():
    body = '<p title="see HTTPS://a.example/x?y=1">at https://console.example/home#a, s3://bucket/key</p>'

    page = export_page(body, (), "https://b.example/")

    assert "example" not in page
    assert page.count(LEFT_OUT) == 3
    assert "s3://bucket/key" in page


@pytest.mark.parametrize(
    "body",
    [
        '<a href="https://a.example">a</a>',
        '<a href="/jobs">a</a>',
        '<img src="a.png">',
        "<img srcset=a.png>",
        '<svg><use xlink:href="other.svg#a"/></svg>',
        '<svg><rect fill="url(//a.example/#b)"/></svg>',
        "<svg><rect fill=\"url( 'b.svg#c')\"/></svg>",
        "<script>1</script>",
        "<SCRIPT SRC=a>",
        "<img src=a",
        '<link rel="stylesheet">',
        "<iframe></iframe>",
        "<form></form>",
        "<style>p{}</style>",
        "<base>",
        '<meta http-equiv="refresh">',
        '<p style="color: red">a</p>',
        '<p onclick="a()">a</p>',
    ],
)
def test_what_loads_something_or_leads_elsewhere_is_refused_with_what_to_do(body):
    with pytest.raises(ExportError, match="leave it out of what is exported"):
        export_page(f"<p>a page</p>{body}", (), "a")


def test_what_refers_to_the_page_itself_is_allowed():
    body = '<a href="#b">b</a><svg><rect id="b" fill="url(#c)"/><use href="#b"/></svg>'

    assert body in export_page(body, (), "a")


@pytest.mark.parametrize(
    "style", ["@import 'a.css';", "p{background:url(a.png)}", "/* https://a */", "</style><script>"]
)
def test_a_style_sheet_that_refers_to_something_is_refused(style):
    with pytest.raises(ExportError, match="leave that out"):
        export_page("<p>a</p>", (style,), "a")


def test_a_style_sheet_may_refer_to_the_page_itself():
    assert "url(#a)" in export_page("<p>a</p>", ("p { fill: url(#a); }",), "a")

"""Tests the page of `cargo serve` in headless Chromium, with the mouse and with the keyboard.

The service must be new, because the examples must create records. The examples run in the order of
EXAMPLES: a team must exist before users are added to it. The other tests use records of their own.

usage: pytest ci/tests/test_page.py --base-url URL
SCREENSHOT=docs/page.png also takes the screenshot of the README.
"""

import json
import os
import re
import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import expect

OPERATIONS = {file.stem for file in Path(__file__).parents[2].glob("events/*.json")} - {"env"}
EXAMPLES = {
    # operation: kind of record, number of records that its example creates
    "add_models": ("models", 2),
    "create_team": ("teams", 1),
    "add_team_users": ("members", 2),
    "set_bot_voice": ("voices", 1),
    "create_data_store": ("data-stores", 1),
    "create_logging_instance": ("logging-instances", 1),
}


@pytest.fixture(scope="session")
def base_url(pytestconfig):
    return pytestconfig.getoption("--base-url") or pytest.exit("Add --base-url and the URL of `cargo serve`.", returncode=1)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    names = ["chromium", "chromium-browser", "google-chrome"]
    chromium = next(filter(None, map(shutil.which, names)), None) or pytest.exit("Install Chromium.", returncode=1)
    return {"executable_path": chromium, "args": ["--no-sandbox"], **browser_type_launch_args}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    return {**browser_context_args, "viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}


@pytest.fixture(autouse=True)
def expected_errors(context, page, base_url):
    """Opens the page. Prints its requests and records, which pytest shows if the test fails. After the
    test, checks that no other server received a request, and that the console shows no errors except
    those that contain one of the yielded texts.
    """
    requests, errors, expected = [], [], []
    context.on("request", lambda request: requests.append(request.url))
    context.on("response", lambda response: print(sent(response.request), response.status))
    context.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    page.goto("/")
    expect(page.locator(".opblock").first).to_be_visible()
    expect(page.locator("#tables table").first).to_be_visible()
    yield expected
    print(page.locator("#stored").inner_text())
    own = (f"{base_url.rstrip('/')}/", "data:", "blob:")
    foreign = [url for url in requests if not url.startswith(own)]
    assert not foreign, "the page sent requests to other servers"
    unexpected = [error for error in errors if not any(text in error for text in expected)]
    assert not unexpected, "the browser console shows errors"


@pytest.fixture
def project():
    """The id of a project that has no records."""
    return f"project-{uuid4()}"


def sent(request):
    return " ".join([request.method, request.url, request.post_data or ""])


def block(page, operation):
    return page.locator(f".opblock[id$='-{operation}']")


def execute(page, operation, status, body=None, **parameters):
    """Opens an operation and sends its example, except for the given body and path parameters.
    Checks the status of the response and that the page shows it.
    """
    opened = block(page, operation)
    if not opened.locator(".execute").count():
        opened.locator(".opblock-summary-control").first.click()
    for name, value in parameters.items():
        opened.locator(f"[data-param-name={name}] input").fill(value)
    if body is not None:
        opened.locator("textarea.body-param__text").fill(json.dumps(body))
    with page.expect_response(lambda response: response.request.method == "POST") as received:
        opened.locator("button.execute").click()
    response = received.value
    assert response.status == status, f"sent {sent(response.request)}, received {response.text()}"
    expect(opened.locator(".live-responses-table .response-col_status").nth(1)).to_contain_text(str(status))
    return opened


def stored(page):
    return page.request.get("/stored").json()


def tab_to(page, target):
    for _ in range(200):
        page.keyboard.press("Tab")
        if target.evaluate("target => target === document.activeElement"):
            return
    pytest.fail(f"the Tab key does not reach {target}")


def brightness(page):
    """The brightness of the background, from 0 to 255."""
    rgb = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)")
    return sum(rgb[:3]) / 3


def test_the_page_shows_every_operation(page):
    blocks = page.locator(".opblock")
    expect(blocks).to_have_count(len(OPERATIONS))
    assert {id.split("-")[-1] for id in blocks.evaluate_all("blocks => blocks.map(block => block.id)")} == OPERATIONS


@pytest.mark.parametrize("operation", [*EXAMPLES, *sorted(OPERATIONS - EXAMPLES.keys())])
def test_the_page_shows_the_records_that_an_example_creates(page, operation):
    assert operation in EXAMPLES, f"Add {operation} to EXAMPLES: events/ contains it."
    kind, count = EXAMPLES[operation]
    opened = execute(page, operation, 204)
    new = page.locator(f"table[data-kind={kind}] tr.new")
    expect(new, f"{operation} creates {count} {kind} if the service is new").to_have_count(count)
    expect(page.locator("#news")).to_contain_text("New:")
    if operation == "create_team":
        expect(new).to_contain_text("research-team")
        if "SCREENSHOT" in os.environ:
            opened.evaluate("block => block.scrollIntoView()")
            page.screenshot(path=os.environ["SCREENSHOT"])


def test_a_repeated_request_changes_nothing(page, project):
    execute(page, "create_team", 204, project_id=project)
    expect(page.locator("#news")).to_contain_text("New: teams:")
    before = stored(page)
    execute(page, "create_team", 204, project_id=project)
    expect(page.locator("#news")).to_have_text("The last request changed nothing.")
    expect(page.locator("table[data-kind=teams] tr", has_text=project)).to_have_count(1)
    assert stored(page) == before


def test_an_invalid_body_shows_every_validation_error_and_stores_nothing(page, project, expected_errors):
    # The browser logs every response with an error status.
    expected_errors.append("status of 422")
    before = stored(page)
    opened = execute(page, "create_team", 422, {"teamName": "", "teamDescription": 7}, project_id=project)
    for pointer in ["#/teamName", "#/teamDescription"]:
        expect(opened.locator(".live-responses-table")).to_contain_text(pointer)
    expect(page.locator("#news")).to_have_text("The last request changed nothing.")
    assert stored(page) == before


def test_an_operation_can_be_executed_with_the_keyboard(page):
    bot = f"bot-{uuid4()}"
    opened = block(page, "set_bot_voice")
    tab_to(page, opened.locator(".opblock-summary-control").first)
    page.keyboard.press("Enter")
    expect(opened.locator("button.execute")).to_be_visible()
    tab_to(page, opened.locator("[data-param-name=id] input"))
    page.keyboard.type(bot)
    tab_to(page, opened.locator("button.execute"))
    page.keyboard.press("Enter")
    expect(page.locator("table[data-kind=voices] tr.new")).to_contain_text(bot)


def test_a_new_page_shows_the_stored_records(page, context, project):
    execute(page, "create_team", 204, project_id=project)
    new_page = context.new_page()
    new_page.goto("/")
    expect(new_page.locator("table[data-kind=teams] tr", has_text=project)).to_have_count(1)
    expect(new_page.locator("#news")).to_have_text(re.compile(r"^\d+ records\.$"))


def test_the_page_follows_the_preferred_color_scheme(page):
    assert brightness(page) > 200
    page.emulate_media(color_scheme="dark")
    assert brightness(page) < 80


def test_the_page_fits_the_width_of_a_phone(page, project):
    execute(page, "create_team", 204, project_id=project)
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    expect(page.locator("#stored")).to_be_visible()

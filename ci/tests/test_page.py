"""Tests the page of `cargo serve` in headless Chromium.

The tests start services of their own with `cargo serve`. Screenshots are in target/page/.

usage: pytest ci/tests/test_page.py --node-modules FOLDER
FOLDER contains the packages of ci/package.json.

PICTURES=docs also creates the pictures of the README there.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "target/page"
OPERATIONS = {file.stem for file in (ROOT / "events").glob("*.json")} - {"env"}
EXAMPLES = {
    # operation: kind of record, number of records that its example creates
    "add_models": ("models", 2),
    "create_team": ("teams", 1),
    "add_team_users": ("members", 2),
    "set_bot_voice": ("voices", 1),
    "create_data_store": ("data-stores", 1),
    "create_logging_instance": ("logging-instances", 1),
}
SIZES = {"wide": (1920, 1080), "desktop": (1280, 900), "tablet": (768, 1024), "phone": (375, 812)}
SCHEMES = ["light", "dark"]


class Service:
    """`cargo serve` on free ports."""

    def __init__(self, *options):
        command = ["cargo", "ctl", "serve", "--port", "0", "--dynamodb-port", "0", "--json", *options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        addresses = json.loads(self.process.stdout.readline())
        self.url, self.dynamodb, self.key = (addresses[name] for name in ("url", "dynamodb", "key"))

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def send(self, path, body):
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"authorization": f"Bearer {self.key}"}
        )
        with urllib.request.urlopen(request) as response:
            assert response.status == 204

    def create_team(self, project, name, description=""):
        path = f"/api/v1/project/acme/{project}/createNewTeamOnProject"
        self.send(path, {"teamName": name, "teamDescription": description})

    def stored(self, kind):
        with urllib.request.urlopen(f"{self.url}/stored/{kind}") as response:
            return json.load(response)["records"]

    def ctl(self, *arguments):
        environment = {**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": self.dynamodb}
        subprocess.run(["cargo", "ctl", *arguments], cwd=ROOT, env=environment, check=True)


@pytest.fixture(scope="session")
def service():
    service = Service()
    yield service
    service.stop()


@pytest.fixture
def new_service():
    """A service without records."""
    service = Service()
    yield service
    service.stop()


@pytest.fixture(scope="session")
def base_url(service):
    return service.url


@pytest.fixture(scope="session")
def node_modules(pytestconfig):
    return Path(pytestconfig.getoption("--node-modules"))


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    names = ["chromium", "chromium-browser", "google-chrome"]
    chromium = next(filter(None, map(shutil.which, names)), None)
    chromium or pytest.exit("Install Chromium.", returncode=1)
    return {"executable_path": chromium, "args": ["--no-sandbox"], **browser_type_launch_args}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    size = dict(zip(["width", "height"], SIZES["desktop"]))
    return {**browser_context_args, "viewport": size, "color_scheme": "light"}


@pytest.fixture(autouse=True)
def expected_errors(context):
    """Prints the requests, which pytest shows if the test fails. After the test, checks that no other
    server received a request, and that the console shows no errors except those that contain one of
    the yielded texts.
    """
    requests, errors, expected = [], [], []
    context.on("request", lambda request: requests.append(request))
    context.on("response", lambda response: print(sent(response.request), response.status))
    context.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    yield expected
    foreign = [
        one.url for one in requests if not one.url.startswith(f"{one.frame.url.split('/#')[0].rstrip('/')}/")
    ]
    assert not foreign, "the page sent requests to other servers"
    unexpected = [error for error in errors if not any(text in error for text in expected)]
    assert not unexpected, "the browser console shows errors"


@pytest.fixture
def project():
    """The id of a project that has no records."""
    return f"project-{uuid4()}"


def sent(request):
    return " ".join([request.method, request.url, request.post_data or ""])


def open_page(page, operation="", url=""):
    page.goto(f"{url}/#/{operation}")
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator("#following")).to_have_text("Live")


def body_of(page):
    return page.get_by_role("textbox", name="Body")


def fill(page, body=None, **parameters):
    for name, value in parameters.items():
        page.get_by_label(re.compile(f"^{name}")).fill(value)
    if body is not None:
        body_of(page).fill(body if isinstance(body, str) else json.dumps(body))


def send(page, status, body=None, **parameters):
    """Sends the request with these parameters and this body. Checks the first line of the status."""
    fill(page, body, **parameters)
    # The status of the request before must not count.
    page.locator("#status").evaluate("status => status.replaceChildren()")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#status strong")).to_have_text(status)


def screenshot(page, name):
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def is_in_view(page, locator):
    box = locator.bounding_box()
    size = page.viewport_size
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"] and box["x"] >= 0 and (
        box["x"] + box["width"] <= size["width"]
    )


def new_rows(page, kind):
    return page.locator(f"[data-kind={kind}] li.new")


def tab_to(page, target):
    """Presses Tab until the target has the focus, and returns how often."""
    for count in range(1, 100):
        page.keyboard.press("Tab")
        if target.evaluate("target => target === document.activeElement"):
            return count
    pytest.fail(f"the Tab key does not reach {target}")


# The operations


def test_every_operation_has_a_link_and_a_url(page):
    open_page(page)
    links = page.locator("#operations a")
    assert {link.get_attribute("href")[2:] for link in links.all()} == OPERATIONS
    for link in links.all():
        link.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(link.inner_text())
        expect(page).to_have_url(re.compile(re.escape(link.get_attribute("href"))))
        expect(link).to_have_attribute("aria-current", "page")


def test_every_operation_has_an_example():
    assert EXAMPLES.keys() == OPERATIONS, "Add the new operation to EXAMPLES."


def test_the_operations_succeed_from_top_to_bottom(page, new_service):
    open_page(page, url=new_service.url)
    expect(page.locator("#kinds")).to_contain_text("No records yet.")
    for link in page.locator("#operations a").all():
        operation = link.get_attribute("href")[2:]
        link.click()
        send(page, "204 stored")
        kind, count = EXAMPLES[operation]
        expect(new_rows(page, kind), f"{operation} creates {count} {kind}").to_have_count(count)
        assert len(new_service.stored(kind)) == count
        screenshot(page, f"desktop-light-{operation}")
    for link in page.locator("#operations a").all():
        link.click()
        send(page, "204 already exists")
    expect(page.locator("li.new")).to_have_count(EXAMPLES["create_logging_instance"][1])


def test_the_pictures_of_the_readme(browser, new_service):
    new_service.create_team("apollo", "Design", "Draws the interface")
    for scheme in SCHEMES:
        viewport = dict(zip(["width", "height"], SIZES["desktop"]))
        context = browser.new_context(viewport=viewport, color_scheme=scheme, base_url=new_service.url)
        page = context.new_page()
        for operation in ["add_models", "create_team", "add_team_users"]:
            open_page(page, operation)
            page.get_by_role("button", name="Send").click()
            expect(page.locator("#status strong")).to_have_text(re.compile("204 (stored|already exists)"))
        open_page(page, "create_team")
        name = {"light": "Research", "dark": "Docs"}[scheme]
        body = json.dumps({"teamName": name, "teamDescription": "Reads papers"}, indent=2)
        send(page, "204 stored", body)
        expect(new_rows(page, "teams")).to_have_count(1)
        for folder in {SCREENSHOTS, Path(os.environ.get("PICTURES", SCREENSHOTS))}:
            page.screenshot(path=folder / f"page-{scheme}.png")
        context.close()


def test_entered_values_are_kept_and_shared_by_the_operations(page, project):
    open_page(page, "create_team")
    body = {"teamName": "C Sharp"}
    send(page, "204 stored", body, project_id=project)
    page.goto("/#/add_team_users")
    expect(page.get_by_label("project_id")).to_have_value(project)
    expect(page.get_by_label("team_id")).to_have_value("c-sharp")
    send(page, "204 stored")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Create a team in a project")
    expect(body_of(page)).to_have_value(json.dumps(body))
    expect(page.locator("#status strong")).to_have_text("204 stored")
    page.get_by_role("button", name="Reset").click()
    expect(page.get_by_label("project_id")).to_have_value("apollo")
    expect(body_of(page)).to_have_value(re.compile("Research Team"))


def test_the_page_explains_authentication_errors_ids_and_repeated_requests(page):
    open_page(page)
    for name in ["Authentication", "Ids", "Repeated requests", "Errors"]:
        page.locator("nav").get_by_role("link", name=name, exact=True).click()
        heading = page.locator("#guide").get_by_role("heading", name=name)
        expect(heading).to_be_focused()
        assert is_in_view(page, heading)
    screenshot(page, "desktop-light-guide")


def test_the_errors_of_an_operation_are_in_one_table(page):
    open_page(page, "create_team")
    table = page.get_by_role("region", name="Errors of the operation")
    for status, code in [("400", "not_json"), ("409", "other_description"), ("503", "unavailable")]:
        row = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name=status))
        expect(row.filter(has=page.get_by_text(code, exact=True))).to_have_count(1)
    table.get_by_role("group").filter(has_text="already exists with another description").click()
    expect(table.get_by_text('"reason": "other_description"')).to_be_visible()


# The status of a request


def test_a_conflict_names_the_existing_record(page, project, expected_errors):
    expected_errors.append("409")
    open_page(page, "create_team")
    send(page, "204 stored", {"teamName": "C++"}, project_id=project)
    send(page, '409 taken by a team named "C++"', {"teamName": "C#"})
    expect(page.locator("#status")).to_have_css("color", "rgb(140, 20, 16)")
    send(page, "409 taken by a team with another description", {"teamName": "C++", "teamDescription": "a"})
    page.goto("/#/create_logging_instance")
    send(page, "204 stored", {"projectName": "<b>Zoë</b>"})
    send(page, '409 taken by a logging instance named "<b>Zoë</b>"', {"projectName": "Other"})
    page.goto("/#/create_data_store")
    name = f"Store {uuid4()} +"
    send(page, "204 stored", {"dataStoreName": name})
    send(page, f'409 taken by a data store named "{name}"', {"dataStoreName": name.replace("+", "#")})
    page.goto("/#/add_models")
    model = str(uuid4())
    models = {"aIModelsSelectedToAddToOrg": [{"id": 1, "modelid": model}]}
    send(page, "204 stored", models)
    models["aIModelsSelectedToAddToOrg"] = [{"id": 1, "modelid": "x"}, {"id": 7, "modelid": model}]
    send(page, f'409 taken by "{model}" with another id', models)


def test_a_status_says_what_was_stored(page, project):
    open_page(page, "create_team")
    send(page, "204 stored", project_id=project)
    expect(page.locator("#response")).to_contain_text("x-resource-idresearch-team")
    send(page, "204 already exists")
    page.goto("/#/add_team_users")
    send(page, "204 stored", {"usersAddingToTeam": [{"userid": "ada"}, {"userid": "ada"}]})
    expect(page.locator("#status p")).to_have_text(["Members: ada"])
    send(page, "204 stored", {"usersAddingToTeam": [{"userid": "ada"}, {"userid": "bob"}]})
    expect(page.locator("#status p")).to_have_text(["Members: bob", "1 other already existed."])
    send(page, "204 stored", {"usersAddingToTeam": [{"userid": "eve"}], "unknown": [1, 2]})
    expect(page.locator("#status p")).to_have_text(["Members: eve"])
    send(page, "204 already exists", {"usersAddingToTeam": [{"userid": "ada"}]})
    # The service skips a byte order mark, which is not JSON for the browser.
    send(page, "204 stored", '\ufeff{"usersAddingToTeam": [{"userid": "zoe"}]}')
    page.goto("/#/set_bot_voice")
    bot = str(uuid4())
    send(page, "204 stored", id=bot)
    send(page, "204 changed", {"type": "verse", "enabled": False})
    expect(new_rows(page, "voices")).to_contain_text("verse")


def test_a_failure_of_the_page_does_not_block_the_next_request(page, project):
    open_page(page, "create_team")
    # Half of a surrogate pair cannot be encoded.
    page.evaluate("entered.parameters.project_id = '\\ud800'")
    send(page, "the page failed")
    send(page, "204 stored", project_id=project)


def test_an_error_says_what_is_wrong_and_stores_nothing(page, service, project, expected_errors):
    expected_errors.extend(["400", "401", "403", "404", "422"])
    before = service.stored("teams")
    open_page(page, "create_team")
    send(page, "422 invalid body: 2 values", {"teamName": "", "teamDescription": 7}, project_id=project)
    expect(page.locator("#status")).to_contain_text("#/teamName must not be empty")
    send(page, "400 not JSON", "nonsense")
    expect(page.locator("#hint")).to_contain_text("Not JSON")
    expect(page.locator("#sample")).to_have_text("The body is not JSON.")
    page.get_by_role("button", name="Reset").click()
    send(page, "400 malformed path", project_id="a b")
    send(page, "403 other organization", org_id="globex", project_id=project)
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("API key").fill("wsk_wrong")
    send(page, "401 API key required")
    expect(page.locator("#response")).to_contain_text("www-authenticate")
    page.get_by_label("API key").fill("€")
    send(page, "not sent: a header is invalid")
    page.get_by_role("button", name="Reset").click()
    send(page, "not sent: . and .. are not ids", project_id="..")
    page.goto("/#/add_team_users")
    send(page, "404 no such team", project_id=project)
    assert service.stored("teams") == before


def test_a_request_without_a_key_is_sent_without_one(page):
    open_page(page, "create_data_store")
    expect(page.locator("label[for=field-key] small")).to_have_text("optional, sent as Authorization")
    with page.expect_request("**/dataStores/create") as received:
        send(page, "204 stored", {"dataStoreName": str(uuid4())}, **{"API key": ""})
    assert "authorization" not in received.value.all_headers()
    expect(new_rows(page, "data-stores")).to_contain_text("by anonymous")


def test_a_key_is_not_optional_if_anonymous_callers_are_denied(page):
    service = Service("--anonymous", "denied")
    open_page(page, "create_data_store", url=service.url)
    expect(page.locator("label[for=field-key] small")).to_have_text("sent as Authorization")
    service.stop()


def test_a_service_that_does_not_respond(page, new_service, expected_errors):
    expected_errors.append("ERR_CONNECTION_REFUSED")
    open_page(page, "create_team", url=new_service.url)
    new_service.stop()
    send(page, "no response: is the service running?")
    expect(page.locator("#following")).to_have_text("No response: is the service running?")
    screenshot(page, "desktop-light-stopped")


def test_a_contract_that_cannot_be_loaded(page, expected_errors):
    expected_errors.append("500")
    page.route("**/openapi.json", lambda route: route.fulfill(status=500))
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("The contract cannot be loaded")


@pytest.mark.parametrize("size", SIZES)
def test_the_status_is_in_view(page, size, project, expected_errors):
    expected_errors.extend(["404", "422"])
    page.set_viewport_size(dict(zip(["width", "height"], SIZES[size])))
    status = page.locator("#status")
    for operation in EXAMPLES:
        open_page(page, operation)
        page.get_by_role("button", name="Send").click()
        expect(status.locator("strong")).to_have_text(re.compile(r"^\d{3} "))
        assert is_in_view(page, status), operation
        send(page, re.compile("^422 "), {})
        assert is_in_view(page, status), operation
    screenshot(page, f"{size}-light-422")


def test_everything_that_matters_is_in_view_at_1280_pixels(page, project):
    for operation in EXAMPLES:
        open_page(page, operation)
        if page.get_by_label("project_id").count():
            fill(page, project_id=project)
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#status strong")).to_have_text(re.compile("^204 "))
        for part in ["#title", "#fields", "#body", "#send", "#status", "#response dl", "#kinds li >> nth=0"]:
            assert is_in_view(page, page.locator(part)), f"{operation}: {part}"


# Samples


def sample(page, language):
    page.get_by_role("tab", name=language).click()
    return page.locator("#sample").inner_text()


def run_sample(language, text, folder, node_modules):
    if language == "curl":
        return subprocess.run(["sh", "-c", text], capture_output=True, text=True)
    if language == "Python":
        return subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True)
    (folder / "sample.mts").write_text(text)
    options = "--strict --target es2022 --module nodenext --lib es2022,dom".split()
    compiler = node_modules / ".bin/tsc"
    command = [compiler, *options, "sample.mts"]
    compiled = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stdout
    return subprocess.run(["node", "sample.mjs"], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("language", ["curl", "Python", "TypeScript"])
@pytest.mark.parametrize("operation", EXAMPLES)
def test_a_sample_sends_the_same_request(page, service, tmp_path, node_modules, project, operation, language):
    service.create_team(project, "Research Team", "Reads papers")
    open_page(page, operation)
    if page.get_by_label("project_id").count():
        fill(page, project_id=project)
    result = run_sample(language, sample(page, language), tmp_path, node_modules)
    assert "204" in result.stdout and result.returncode == 0, result


TEXT = "true, null and 'a' \"b\" \\ $HOME `ls` ${x} %s é 🎉\n\ttab false"


@pytest.mark.parametrize("language", ["curl", "Python", "TypeScript"])
def test_a_sample_keeps_every_character(page, service, tmp_path, node_modules, project, language):
    open_page(page, "create_team")
    ignored = {"true": None, "a": [True, False, [], {}, 1.5, -2e30], "__proto__": {"b": None}}
    fill(page, {"teamName": "Odd", "teamDescription": TEXT, "ignored": ignored}, project_id=project)
    result = run_sample(language, sample(page, language), tmp_path, node_modules)
    assert "204" in result.stdout and result.returncode == 0, result
    stored = [team for team in service.stored("teams") if team["project_id"] == project]
    assert [team["team_description"] for team in stored] == [TEXT]


def test_a_sample_can_be_copied(context, page):
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, "create_team")
    text = sample(page, "Python")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == text


# Stored records


def test_the_page_follows_curl_other_tabs_and_workspacectl(page, context, service, project):
    open_page(page, "create_team")
    row = page.locator("[data-kind=teams] li", has_text="Followed")
    service.create_team(project, "Followed")
    expect(row).to_have_class("new", timeout=2_000)
    other = context.new_page()
    open_page(other, "create_team")
    expect(other.locator("[data-kind=teams] li", has_text="Followed")).to_have_count(1)
    send(other, "204 stored", {"teamName": "Other tab"}, project_id=project)
    page.bring_to_front()
    expect(page.locator("[data-kind=teams] li", has_text="Other tab")).to_have_class("new", timeout=2_000)
    service.ctl("remove", "team", "--org", "acme", "--project", project, "followed", "--yes", "--wait", "0")
    expect(row).to_have_count(0, timeout=2_000)


def test_new_records_do_not_move_the_focus(page, service, project):
    service.create_team(project, "First")
    open_page(page, "create_team")
    link = page.locator("[data-kind=teams]").get_by_role("link")
    link.focus()
    service.create_team(project, "Second")
    expect(page.locator("[data-kind=teams] li", has_text="Second")).to_have_count(1)
    expect(link).to_be_focused()


def test_a_kind_that_does_not_exist(page, expected_errors):
    expected_errors.append("404")
    open_page(page)
    page.goto("/#/records/foo")
    expect(page.locator("#all-count")).to_have_text("there is no such kind of records")
    page.goto("/#/create_team")
    expect(page.locator("#following")).to_have_text("Live")


def test_records_have_headings_and_times(page, project):
    open_page(page, "create_team")
    send(page, "204 stored", project_id=project)
    teams = page.locator("[data-kind=teams]")
    expect(teams.get_by_role("heading", level=4).first).to_have_text(f"organization acme, project {project}")
    expect(teams.locator("time").first).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$"))


def test_text_of_records_is_not_html(page, project):
    open_page(page, "create_team")
    name = '<img src="/x" onerror="alert(1)"> & co'
    send(page, "204 stored", {"teamName": name, "teamDescription": name}, project_id=project)
    expect(new_rows(page, "teams")).to_contain_text(name)
    assert page.locator("#kinds img").count() == 0


def test_five_thousand_members_do_not_slow_the_page_down(page, new_service):
    new_service.create_team("apollo", "Research Team")
    for batch in range(50):
        users = [{"userid": f"user-{batch * 100 + number}"} for number in range(100)]
        new_service.send("/api/v1/project/acme/apollo/research-team/addUsersToTheTeam", {"usersAddingToTeam": users})
    open_page(page, "create_data_store", url=new_service.url)
    expect(page.locator("[data-kind=members] li")).to_have_count(20)
    started = time.monotonic()
    send(page, "204 stored")
    expect(new_rows(page, "data-stores")).to_have_count(1)
    duration = time.monotonic() - started
    assert duration < 1, f"a request took {duration:.2f} s"
    polls = page.evaluate("performance.getEntriesByName(location.origin + '/stored').map(one => one.duration)")
    print("milliseconds of polls:", polls)
    page.wait_for_timeout(3_000)
    polls = page.evaluate("performance.getEntriesByName(location.origin + '/stored').slice(-2).map(one => one.duration)")
    assert max(polls) < 200, polls
    link = page.get_by_role("link", name="All 5,000 records: members")
    link.click()
    expect(page.locator("#all-count")).to_have_text("500 of 5,000 records, the newest first")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#all tbody tr")).to_have_count(5_000)
    new_service.send(
        "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam", {"usersAddingToTeam": [{"userid": "last"}]}
    )
    expect(page.locator("#all-count")).to_have_text("5,001 of 5,001 records, the newest first")
    screenshot(page, "desktop-light-all")


# Access


def test_a_record_is_stored_with_the_keyboard_only(page, project):
    open_page(page, "create_team")
    presses = tab_to(page, page.get_by_role("link", name="Skip to the content"))
    page.keyboard.press("Enter")
    presses += tab_to(page, page.get_by_label("project_id"))
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(project)
    presses += tab_to(page, page.get_by_role("button", name="Send"))
    page.keyboard.press("Enter")
    expect(page.locator("#status strong")).to_have_text("204 stored")
    expect(page).to_have_url(re.compile("#/create_team$"))
    expect(page.get_by_role("button", name="Send")).to_be_focused()
    assert presses <= 10, presses
    body_of(page).focus()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#status strong")).to_have_text("204 already exists")


def test_the_navigation_moves_the_focus_to_the_new_content(page):
    open_page(page)
    expect(page.locator("body")).to_be_focused()
    link = page.get_by_role("link", name="Add users to a team")
    tab_to(page, link)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    tab_to(page, page.get_by_role("tab", name="curl"))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Python")).to_be_focused()
    expect(page.locator("#sample")).to_contain_text("import json")


def test_the_menu_of_a_phone_opens_and_closes(page):
    page.set_viewport_size({"width": 375, "height": 812})
    open_page(page)
    link = page.get_by_role("link", name="Create a team in a project")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    screenshot(page, "phone-light-menu")
    link.click()
    expect(link).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_have_text("Create a team in a project")


def violations(page, node_modules):
    page.evaluate((node_modules / "axe-core/axe.min.js").read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_no_violation(page, service, node_modules, project, expected_errors, size, scheme):
    expected_errors.extend(["409", "422", "404"])
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(dict(zip(["width", "height"], SIZES[size])))
    service.create_team(project, "C++")

    def check(name):
        screenshot(page, f"{size}-{scheme}-{name}")
        assert page.evaluate("document.scrollingElement.scrollWidth") <= SIZES[size][0], name
        assert violations(page, node_modules) == [], name

    open_page(page, "create_team")
    check("ready")
    send(page, "204 stored", {"teamName": str(uuid4())}, project_id=project)
    check("204-stored")
    send(page, "204 already exists")
    check("204-exists")
    send(page, '409 taken by a team named "C++"', {"teamName": "C#"})
    page.locator("#errors details").first.evaluate("details => details.open = true")
    check("409")
    send(page, "422 invalid body: 1 value", {})
    check("422")
    page.goto("/#/add_team_users")
    send(page, "404 no such team", team_id="nobody")
    check("404")
    page.goto("/#/guide/ids")
    check("guide")
    page.goto("/#/records/teams")
    expect(page.locator("#all tbody tr").first).to_be_visible()
    check("all")


def test_nothing_moves():
    """So there is nothing that the preference for reduced motion would have to stop."""
    style = (ROOT / "ctl/page/page.css").read_text()
    assert not re.search("transition|animation|scroll-behavior", style)
    assert "smooth" not in (ROOT / "ctl/page/page.js").read_text()


def test_forced_colors_are_respected(page, project):
    page.emulate_media(forced_colors="active")
    open_page(page, "create_team")
    send(page, "204 stored", project_id=project)
    style = "element => getComputedStyle(element).borderBottomWidth"
    assert page.get_by_role("tab", name="curl").evaluate(style) == "2px"
    assert new_rows(page, "teams").first.evaluate(style) == "2px"
    screenshot(page, "desktop-forced-colors")


def test_the_page_follows_the_preferred_color_scheme(page):
    open_page(page)
    for scheme, color in [("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 22, 27)")]:
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("body")).to_have_css("background-color", color)


# Speed


def load_times(browser, base_url):
    """The medians of several loads: milliseconds until the first paint, and until the page is usable."""
    paints, usable = [], []
    for _ in range(7):
        context = browser.new_context(base_url=base_url)
        page = context.new_page()
        open_page(page)
        paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        paints.append(page.evaluate(paint))
        usable.append(page.evaluate("performance.getEntriesByName('usable')[0].startTime"))
        context.close()
    return statistics.median(paints), statistics.median(usable)


def test_the_page_is_fast(browser, base_url):
    # Other work on the machine can slow one round down, but a slow page is slow in each.
    for _ in range(3):
        paint, usable = load_times(browser, base_url)
        print(f"first paint after {paint:.0f} ms, usable after {usable:.0f} ms")
        if paint < 200 and usable < 400:
            return
    pytest.fail(f"first paint after {paint:.0f} ms, usable after {usable:.0f} ms")

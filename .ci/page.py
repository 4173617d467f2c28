"""Tests the page of `cargo serve` in headless Chromium, with the mouse and with the keyboard.

usage: page.py URL [SCREENSHOT.png]
"""

import shutil
import sys

from playwright.sync_api import expect, sync_playwright

OPERATIONS = [
    # tag, operation, kind of record, number of records that it creates
    ("organization", "add_models", "models", 2),
    ("project", "create_team", "teams", 1),
    ("project", "add_team_users", "members", 2),
    ("bot", "set_bot_voice", "voices", 1),
    ("organization", "create_data_store", "data-stores", 1),
    ("project", "create_logging_instance", "logging-instances", 1),
]

url = sys.argv[1]
screenshot = sys.argv[2] if len(sys.argv) > 2 else None
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or sys.exit("chromium is not installed")
checks = 0


def passed(sentence):
    global checks
    checks += 1
    print(f"ok {checks} {sentence}")


def block(page, tag, operation):
    return page.locator(f"#operations-{tag}-{operation}")


def status_in(opened):
    return opened.locator(".live-responses-table .response .response-col_status").first


def press(page, target, name):
    """Moves the focus to an element with the Tab key and presses Enter."""
    for _ in range(200):
        if target.evaluate("target => target === document.activeElement"):
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    sys.exit(f"{name} cannot be reached with the keyboard")


def execute(page, tag, operation):
    """Opens an operation, sends its request and waits. Returns its block and the response status."""
    opened = block(page, tag, operation)
    if not opened.locator(".execute").count():
        opened.locator(".opblock-summary-control").first.click()
    opened.locator("button.execute").click()
    status = status_in(opened)
    expect(status).to_be_visible()
    return opened, status.inner_text().split()[0]


def luminance(page):
    rgb = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)")
    return sum(rgb[:3]) / 3


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    page = context.new_page()
    console_errors, foreign_requests = [], []
    page.on("console", lambda message: console_errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: console_errors.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith((url, "data:", "blob:")) else foreign_requests.append(request.url))

    page.goto(url)
    expect(page.locator(".opblock")).to_have_count(len(OPERATIONS))
    passed(f"the page shows {len(OPERATIONS)} operations")

    for tag, operation, kind, count in OPERATIONS:
        _, status = execute(page, tag, operation)
        assert status == "204", f"{operation} returned {status}"
        rows = page.locator(f"table[data-kind={kind}] tbody tr")
        expect(rows).to_have_count(count)
        expect(page.locator("#news")).to_contain_text("New:")
        passed(f"{operation} returns 204, and the page shows the new {kind} ({count})")
        if operation == "create_team":
            expect(rows.first).to_contain_text("research-team")
            if screenshot:
                block(page, tag, operation).evaluate("block => block.scrollIntoView()")
                page.screenshot(path=screenshot)
        block(page, tag, operation).locator(".opblock-summary-control").first.click()

    opened, status = execute(page, "project", "create_team")
    assert status == "204", status
    expect(page.locator("#news")).to_have_text("The last request changed nothing.")
    expect(page.locator("table[data-kind=teams] tbody tr")).to_have_count(1)
    passed("a repeated request changes nothing")

    opened.locator("textarea.body-param__text").fill('{"teamName": "", "teamDescription": 7}')
    opened.locator("button.execute").click()
    live = opened.locator(".live-responses-table")
    expect(live.locator(".response-col_status").nth(1)).to_contain_text("422")
    for pointer in ["#/teamName", "#/teamDescription"]:
        expect(live).to_contain_text(pointer)
    expect(page.locator("table[data-kind=teams] tbody tr")).to_have_count(1)
    passed("an invalid body shows both violations and stores nothing")
    # The browser logs every unsuccessful response itself.
    console_errors[:] = [text for text in console_errors if "422" not in text]

    page.reload()
    expect(page.locator("table[data-kind=teams] tbody tr")).to_have_count(1)
    opened = block(page, "bot", "set_bot_voice")
    press(page, opened.locator(".opblock-summary-control").first, "an operation")
    button = opened.locator("button.execute")
    expect(button).to_be_visible()
    press(page, button, "Execute")
    expect(status_in(opened)).to_contain_text("204")
    passed("an operation can be opened and executed with the keyboard")

    light = luminance(page)
    page.emulate_media(color_scheme="dark")
    assert light > 200 and luminance(page) < 80, (light, luminance(page))
    passed("the page follows the preferred color scheme")

    page.set_viewport_size({"width": 360, "height": 740})
    width = page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= 360, f"the page is {width} pixels wide on a phone"
    expect(page.locator("#stored")).to_be_visible()
    passed("the page fits the width of a phone")

    assert not foreign_requests, foreign_requests
    passed("no requests were sent to other servers")
    assert not console_errors, console_errors
    passed("the browser console shows no errors")
    browser.close()
print(f"page: {checks} passed")

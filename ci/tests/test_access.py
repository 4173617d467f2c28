"""Tests in Chromium that pages of other origins cannot use either port of `cargo serve`.

usage: SERVE=FILE pytest ci/tests/test_access.py, where FILE is the compiled program.
"""

import json

import pytest

# The browser resolves this name to this machine.
HOST = "evil.example"
EVIL = f"http://{HOST}/"
DATA_STORES = "/api/v1/org/acme/dataStores/create"
SCAN = "DynamoDB_20120810.Scan"
PUT = "DynamoDB_20120810.PutItem"


@pytest.fixture(scope="module")
def service(serve):
    return serve()


@pytest.fixture
def evil(page):
    """A page of another origin."""
    page.route(EVIL, lambda route: route.fulfill(content_type="text/html", body="<!doctype html>"))
    page.goto(EVIL)
    return page


@pytest.fixture(autouse=True)
def nothing_is_stored(page, service):
    """Checks that a test does not change the tables."""

    def scan(table):
        response = page.request.post(service.dynamodb, headers={"x-amz-target": SCAN}, data={"TableName": table})
        return response.json()["Items"]

    tables = ["OrganizationsTable", "KeysTable", "DataStoresTable"]
    before = [scan(table) for table in tables]
    yield
    assert [scan(table) for table in tables] == before


def fetch(page, url, **options):
    """Sends a request from a page. Returns the status or the error."""
    script = """async ([url, options]) => {
      try { return { status: (await fetch(url, options)).status }; }
      catch (error) { return { error: String(error) }; }
    }"""
    return page.evaluate(script, [url, options])


def test_a_page_of_an_origin_in_cors_can_write(evil, serve):
    """If this page could not write, the tests below would prove nothing."""
    url = serve("--cors", EVIL.rstrip("/")).url + DATA_STORES
    assert fetch(evil, url, method="POST", body='{"dataStoreName": "Papers"}') == {"status": 204}


def test_a_page_of_another_origin_cannot_read(evil, service):
    for path in ["/", "/stored", "/openapi.yaml"]:
        assert "error" in fetch(evil, service.url + path)
    scan = {"method": "POST", "body": '{"TableName": "KeysTable"}'}
    assert "error" in fetch(evil, service.dynamodb, headers={"x-amz-target": SCAN}, **scan)


def test_a_page_of_another_origin_cannot_write(evil, service):
    url, post = service.url + DATA_STORES, {"method": "POST", "body": '{"dataStoreName": "Evil"}'}
    assert "error" in fetch(evil, url, headers={"content-type": "application/json"}, **post)
    put = {"method": "POST", "body": json.dumps({"TableName": "OrganizationsTable", "Item": {"org_id": {"S": "evil"}}})}
    assert "error" in fetch(evil, service.dynamodb, headers={"x-amz-target": PUT}, **put)
    # The browser sends these requests without asking the server. The page cannot read a response.
    for send in ["fetch(url, {method: 'post', mode: 'no-cors', body})", "navigator.sendBeacon(url, body)"]:
        with evil.expect_response(url) as response:
            evil.evaluate(f"([url, body]) => {{ {send} }}", [url, post["body"]])
        assert response.value.status == 403


@pytest.mark.parametrize("encoding", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_form_of_another_origin_cannot_write(evil, service, encoding):
    script = """([url, encoding]) => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action: url, enctype: encoding });
      const input = document.createElement("input");
      Object.assign(input, { name: '{"dataStoreName": "Evil", "x": "', value: '"}' });
      form.append(input);
      document.body.append(form);
      form.submit();
    }"""
    with evil.expect_navigation() as navigation:
        evil.evaluate(script, [service.url + DATA_STORES, encoding])
    assert navigation.value.status == 403


def test_the_service_rejects_a_foreign_name_that_resolves_to_this_machine(page, service):
    for url in [service.url, service.dynamodb]:
        response = page.goto(url.replace("127.0.0.1", HOST))
        assert response.status == 403
        assert service.key not in response.text()
        # The browser allows this request, because the URL has the same origin as the page.
        assert fetch(page, DATA_STORES, method="POST", body='{"dataStoreName": "Evil"}')["status"] == 403

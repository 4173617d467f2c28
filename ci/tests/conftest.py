"""The options of the tests in this folder."""


def pytest_addoption(parser):
    parser.addoption("--node-modules", help="the folder with the packages of ci/package.json")

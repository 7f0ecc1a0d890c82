"""Whatever the protocol, the site or the browser can refuse has a sentence for the owner, and the next step."""

import re
from pathlib import Path
from typing import get_args

import pytest

from accounts import errors as accounts_errors
from accounts.domain.policy import BlockReason
from common.errors import NightshiftError
from tests.phone.shell.conftest import ROOT
from tests.phone.shell.phone import Phone
from worker_protocol.wire import messages

pytestmark = pytest.mark.browser

DOCUMENT = (ROOT / "docs" / "protocol.md").read_text()
WORKER = ROOT / "worker_protocol" / "static" / "worker_protocol" / "worker"


def rows(section: str) -> list[list[str]]:
    """The cells of the tables below a heading, without their backquotes."""
    text = re.split(r"^#{2,3} ", DOCUMENT.partition(section)[2], maxsplit=1, flags=re.M)[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def listed(section: str, before: str, after: str) -> list[str]:
    """The codes in backquotes between two phrases of a section."""
    text = DOCUMENT.partition(section)[2].partition(before)[2].partition(after)[0]
    return re.findall(r"`(\w+)`", text)


ERRORS = rows("## Errors and close codes")
CODES = {
    "error": [row[0] for row in ERRORS],
    "close": [row[2] for row in ERRORS] + ["1001", "1006", "1012"],
    "handback": [row[0] for row in rows("### `handback`")],
    "revoke": listed("### `revoke`", "`reason`:", "\n\n"),
    "blocked": listed("### `blocked`", "`reason`:", "or null"),
}


def sentences(phone: Phone, asked: list[tuple[str, str]]) -> list[dict[str, str]]:
    """What the app says to each (family, code)."""
    phone.open()
    found: list[dict[str, str]] = phone.js(
        """(asked) => import("/static/worker_protocol/app/sentences.js").then(({ sentenceFor, anySentenceFor }) =>
            asked.map(([family, code]) =>
                family === "any" ? anySentenceFor(code, { message: "" }) : sentenceFor(family, code)))""",
        asked,
    )
    return found


def is_fit_for_people(sentence: dict[str, str]) -> bool:
    what, following = sentence["what"].strip(), sentence["next"].strip()
    new_to_it = "which is new to this version" in what
    spoiled = re.search(r"undefined|null|NaN", what + following)
    return what.endswith(".") and following.endswith(".") and not new_to_it and spoiled is None


def test_the_document_is_read_as_it_is_meant():
    assert len(CODES["error"]) >= 15
    assert set(CODES["handback"]) == set(get_args(messages.HandbackReason))
    assert set(CODES["blocked"]) == set(get_args(BlockReason))
    assert "4003" in CODES["close"]
    assert set(CODES["revoke"]) == {"expired", "cancelled", "blocked", "superseded", "unknown"}


def test_every_code_of_the_protocol_has_a_sentence(phone):
    asked = [(family, code) for family, codes in CODES.items() for code in codes]
    told = dict(zip(asked, sentences(phone, asked), strict=True))
    assert [key for key, sentence in told.items() if not is_fit_for_people(sentence)] == []


def test_every_refusal_of_a_pairing_has_a_sentence(phone):
    classes: list[type[NightshiftError]] = [
        accounts_errors.LimitError, accounts_errors.InvalidName, accounts_errors.InvalidDeviceFacts,
        accounts_errors.InvalidPublicKey, *accounts_errors.PairingError.__subclasses__(),
    ]  # fmt: skip
    asked = [("pairing", cls.code) for cls in classes]
    told = zip(asked, sentences(phone, asked), strict=True)
    assert [code for code, sentence in told if not is_fit_for_people(sentence)] == []


def test_every_trouble_that_the_worker_names_has_a_sentence(phone):
    text = "\n".join(path.read_text() for path in Path(WORKER).glob("*.js"))
    codes = set(re.findall(r'CannotWork\(\s*"(\w+)"', text))
    codes |= set(re.findall(r'code: "(\w+)"', text)) | set(re.findall(r'missing\.push\("(\w+)"\)', text))
    codes |= {"webgpu", "gpu", "unreachable", "connection_lost", "storage_full"}
    assert {"other_tab", "self_test_failed", "no_gpu"} <= codes
    asked = [("any", code) for code in sorted(codes)]
    told = zip(asked, sentences(phone, asked), strict=True)
    assert [code for code, sentence in told if not is_fit_for_people(sentence)] == []


def test_reasons_that_the_worker_itself_has_for_resting_have_a_sentence(phone):
    asked = [("blocked", reason) for reason in ("stopped", "hidden", "gpu_lost", "too_hot")]
    assert all(is_fit_for_people(sentence) for sentence in sentences(phone, asked))


def test_a_code_of_a_newer_site_is_named_with_what_to_do(phone):
    (sentence,) = sentences(phone, [("error", "from_the_future")])
    assert "from_the_future" in sentence["what"]
    assert sentence["act"] == "reload"

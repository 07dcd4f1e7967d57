"""A NameNode gives no answer that counts: when, and what is said of it in the end.

1. Trust. A certificate or a ticket that is not accepted won't be the next time, and an answer that
   leads out of https neither: that is final.
2. An answer in words of WebHDFS is one, a refusal as well. Whatever else comes is none: a gateway's
   page, or a NameNode that is not up yet. A login that is refused is an answer: asked again and
   again, it could lock the account.
3. Where an error comes without such words, nobody has said that the request was not carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import requests

from tallystick.errors import (
    StorageError,
    StorageLoginFailed,
    StorageRefused,
    StorageUnavailable,
)
from tallystick.storage.name_node import NameNode
from tallystick.storage.refusals import (
    LeadsToClear,
    NoTicket,
    Refusal,
    was_sent,
    why_no_answer,
    why_no_trust,
)

T = TypeVar("T")
_LastingError = type[StorageRefused]


class NoAnswer(Exception):
    """Nobody carried the request out, or nobody said so.

    Made without its cause: the text of that one holds the URL, and a URL may hold a token.
    """

    def __init__(
        self, reason: str, *, may_have_happened: bool, final: _LastingError | None = None
    ) -> None:
        """`final`: the error that it is where no try can mend it."""
        super().__init__(reason)
        self.reason = reason
        self.may_have_happened = may_have_happened
        self._final = final

    @classmethod
    def of(cls, found: Sequence[NoAnswer]) -> NoAnswer:
        """Tells that no NameNode answers: each one's reason; final if all are."""
        reasons = dict.fromkeys(each.reason for each in found)
        return cls(
            "; ".join(reasons),
            may_have_happened=any(each.may_have_happened for each in found),
            final=found[0]._final if all(each.is_final for each in found) else None,
        )

    def before(self) -> NoAnswer:
        """The same of a request that was not made: what was asked before it had no answer."""
        return NoAnswer(self.reason, may_have_happened=False, final=self._final)

    @property
    def is_final(self) -> bool:
        """True where the same request would meet the same again."""
        return self._final is not None

    def error(self, path: str) -> StorageError:
        """Makes the error that is raised for it."""
        return (self._final or StorageUnavailable)(path, self.reason)


def answer_of(node: NameNode, action: Callable[[NameNode], T], *, once: bool) -> T:
    """Returns this NameNode's answer, or its refusal in HDFS's words; raises NoAnswer without one.

    `once`: a success that can't be read may be one.
    """
    try:
        return action(node)
    except Refusal as refusal:
        found = _of_refusal(refusal)
        if found is None:
            raise
        raise found from None
    except (ValueError, KeyError, TypeError):
        # A success in which the package looks in vain for what WebHDFS answers, or a redirect to
        # what is no URL.
        reason = "the answer is not WebHDFS's: is the URL right?"
        raise NoAnswer(reason, may_have_happened=once, final=StorageRefused) from None
    except NoTicket as error:
        # The server has refused the request without a ticket, and got no other.
        reason = f"Kerberos gives no ticket for the server: {error.reason}"
        final = None if error.may_pass else StorageLoginFailed
        raise NoAnswer(reason, may_have_happened=False, final=final) from None
    except LeadsToClear as error:
        # Such a step is never taken: nothing was done there, and nothing was told.
        raise NoAnswer(error.reason, may_have_happened=False, final=StorageLoginFailed) from None
    except requests.RequestException as error:
        raise _of_failure(error, node) from None


def _of_refusal(refusal: Refusal) -> NoAnswer | None:
    """None where the refusal is an answer."""
    if refusal.is_come_back:
        reason = f"{refusal.exception}: {refusal.words}"
        return NoAnswer(reason, may_have_happened=False)
    if refusal.exception is not None or refusal.is_login:
        return None
    error = refusal.error("")
    final = type(error) if isinstance(error, StorageRefused) else None
    return NoAnswer(error.args[1], may_have_happened=refusal.may_have_happened, final=final)


def _of_failure(error: requests.RequestException, node: NameNode) -> NoAnswer:
    distrust = why_no_trust(error)
    if distrust is None:
        return NoAnswer(why_no_answer(error), may_have_happened=was_sent(error))
    reason = f"{distrust}; its authority must be in {_authorities(node)}"
    return NoAnswer(reason, may_have_happened=False, final=StorageLoginFailed)


def _authorities(node: NameNode) -> str:
    """Says where the session looks for who signs certificates."""
    verify = node.session.verify
    return str(verify) if isinstance(verify, str) else "the PEM file that extra verify names"

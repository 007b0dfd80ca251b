"""Uploads are kept by their content, within bounds."""

import hashlib

from interp.ui.cache import Uploads


def test_an_upload_comes_back_by_its_hash() -> None:
    store = Uploads()
    key = store.add(b"bytes", "cat.png")
    assert key == hashlib.sha256(b"bytes").hexdigest()
    assert store.get(key) == (b"bytes", "cat.png")
    assert store.get("another") is None


def test_the_least_recently_used_go_first() -> None:
    store = Uploads(capacity=10)
    first, second = store.add(b"1234", "1"), store.add(b"5678", "2")
    assert store.get(first) is not None
    third = store.add(b"9abc", "3")
    assert [store.get(key) is None for key in (first, second, third)] == [False, True, False]


def test_one_file_larger_than_all_room_is_kept_alone() -> None:
    store = Uploads(capacity=2)
    small, large = store.add(b"1", "1"), store.add(b"12345", "2")
    assert store.get(small) is None
    assert store.get(large) == (b"12345", "2")

"""Signals become a wish to stop; a second Ctrl-C does not wait."""

import os
import signal
import threading

import pytest

from tff_het.simulation.stopping import StopRequest


def test_nothing_is_asked_for_at_first():
    with StopRequest() as stop:
        assert not stop and stop.signal is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_asks(number):
    with StopRequest() as stop:
        os.kill(os.getpid(), number)
        assert stop and stop.signal is number


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_after_a_signal_interrupts(first):
    with StopRequest() as stop:
        os.kill(os.getpid(), first)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal is first


def test_second_sigterm_changes_nothing():
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.signal is signal.SIGINT


def test_handlers_come_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(ZeroDivisionError), StopRequest():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_have_no_handlers():
    found = []

    def run():
        with StopRequest() as stop:
            found.append(bool(stop))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]

"""Django's ASGI handler, with threads that are used again.

As it comes, it starts a thread for each request and crosses between the event loop and that thread five times, once
for each change between middleware that is async and middleware that is not; and what a thread keeps, its connection
to the database, is opened and closed with it. Here all of a request's own code runs in one crossing, in a thread
that has served before and still has its connection (`CONN_MAX_AGE` says how long).
"""

from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.base import BaseHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

IDLE_THREADS = 4  # more than that are ended when they have nothing to do


class ThreadsHandler(ASGIHandler):
    """Requests take the thread that was free last, so that few are warm; there are as many as requests at once."""

    def __init__(self) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self._idle: list[ThreadSensitiveContext] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # asgiref gives each of these contexts a thread of its own.
        context = self._idle.pop() if self._idle else ThreadSensitiveContext()
        token = SyncToAsync.thread_sensitive_context.set(context)
        try:
            await self.handle(scope, receive, send)
        finally:
            # The thread is free: also when whoever asked has gone, its view is waited for before this is reached.
            SyncToAsync.thread_sensitive_context.reset(token)
            if len(self._idle) < IDLE_THREADS:
                self._idle.append(context)
            else:
                _end(context)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)


def _end(context: ThreadSensitiveContext) -> None:
    executor = SyncToAsync.context_to_thread_executor.pop(context, None)
    if executor is not None:
        executor.shutdown(wait=False)

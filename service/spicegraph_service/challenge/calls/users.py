"""Calls about users and their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spicegraph_api.v1 import challenge_pb2 as pb
from spicegraph_service.challenge import accounts, convert
from spicegraph_service.challenge.calls.shared import Calls, account_of_call, organiser
from spicegraph_service.challenge.errors import wrong
from spicegraph_service.server import validation

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from spicegraph_service.server.gate import Context

__all__ = ["UserCalls"]


class UserCalls(Calls):
    """Users: added, listed, shut out, given tokens."""

    async def CreateUser(self, request: pb.CreateUserRequest, context: Context) -> pb.CreateUserResponse:
        """Add a user."""
        del context
        organiser()
        role = convert.role_of(request.role)

        def create(session: Session, now: datetime) -> pb.CreateUserResponse:
            user, secret = accounts.add_user(session, request.name, role, now)
            return pb.CreateUserResponse(user=convert.user_message(user), secret=secret)

        return await self._host.transactions.write(create)

    async def ListUsers(self, request: pb.ListUsersRequest, context: Context) -> pb.ListUsersResponse:
        """List the users."""
        del context
        organiser()
        size = validation.check_page_size(request.page_size)

        def find(session: Session, _now: datetime) -> list[pb.User]:
            found = accounts.list_users(session, request.page_token, size + 1)
            return [convert.user_message(user) for user in found]

        found = await self._host.transactions.read(find)
        return pb.ListUsersResponse(
            users=found[:size], next_page_token=found[size - 1].name if len(found) > size else ""
        )

    async def DeleteUser(self, request: pb.DeleteUserRequest, context: Context) -> pb.DeleteUserResponse:
        """Shut a user out."""
        del context
        if organiser().name == request.name:
            raise wrong("name", "is your own: another organiser must do that")
        await self._host.transactions.write(lambda session, now: accounts.remove_user(session, request.name, now))
        return pb.DeleteUserResponse()

    async def CreateUserToken(self, request: pb.CreateUserTokenRequest, context: Context) -> pb.CreateUserTokenResponse:
        """Make a token."""
        del context
        account = account_of_call()

        def create(session: Session, now: datetime) -> pb.CreateUserTokenResponse:
            token, secret = accounts.add_token(session, account, request.user, request.name, now)
            return pb.CreateUserTokenResponse(token=convert.token_message(token), secret=secret)

        return await self._host.transactions.write(create)

    async def RevokeUserToken(self, request: pb.RevokeUserTokenRequest, context: Context) -> pb.RevokeUserTokenResponse:
        """Revoke a token."""
        del context
        account = account_of_call()
        await self._host.transactions.write(lambda session, _now: accounts.revoke_token(session, account, request.id))
        return pb.RevokeUserTokenResponse()

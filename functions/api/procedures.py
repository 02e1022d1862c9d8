"""/procedures: the skill library."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from pydantic import BaseModel, ConfigDict

from functions.api.request import Text, caller
from octopus.cloud.wiring import services
from octopus.paging import Page
from octopus.procedural.draft import ProcedureChanges, ProcedureDraft
from octopus.procedural.ports import Filter
from octopus.procedural.review import Review
from octopus.procedural.trial import Trial
from octopus.procedural.types import Procedure, ProcedureStatistics, ProcedureStatus, ProcedureVersion

router = APIGatewayHttpRouter()


class Approval(BaseModel):
    model_config = ConfigDict(extra="forbid")

    review_note: Text | None = None
    version: int | None = None


class Rejection(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rejection_reason: Text
    version: int | None = None


class Rollback(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid")

    agent_id: UUID
    message: Text


@router.get("/procedures")
async def list_procedures(
    agent_id: Annotated[UUID | None, Query()] = None,
    status: Annotated[ProcedureStatus | None, Query()] = None,
    is_active: Annotated[bool | None, Query()] = None,
    cursor: Annotated[str | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[Procedure]:
    wanted = Filter(agent_id, status, is_active)
    return await services().procedures.page(caller(router), wanted, cursor, limit)


@router.post("/procedures")
async def create_procedure(procedure: Annotated[ProcedureDraft, Body()]) -> tuple[Procedure, int]:
    return await services().procedures.create(caller(router), procedure), 201


@router.post("/procedures/test")
async def try_message(message: Annotated[Message, Body()]) -> Trial:
    return await services().procedure_trial.run(caller(router), message.agent_id, message.message)


@router.get("/procedures/statistics")
async def list_statistics() -> list[ProcedureStatistics]:
    return await services().procedure_review.statistics(caller(router))


@router.get("/procedures/<procedure_id>")
async def get_procedure(procedure_id: UUID) -> Procedure:
    return await services().procedures.get(caller(router), procedure_id)


@router.patch("/procedures/<procedure_id>")
async def update_procedure(procedure_id: UUID, changes: Annotated[ProcedureChanges, Body()]) -> Procedure:
    return await services().procedures.update(caller(router), procedure_id, changes)


@router.delete("/procedures/<procedure_id>")
async def delete_procedure(procedure_id: UUID) -> tuple[None, int]:
    await services().procedures.delete(caller(router), procedure_id)
    return None, 204


@router.patch("/procedures/<procedure_id>/approve")
async def approve_procedure(procedure_id: UUID, review: Annotated[Approval, Body()]) -> Procedure:
    return await services().procedures.approve(caller(router), procedure_id, review.review_note, review.version)


@router.patch("/procedures/<procedure_id>/reject")
async def reject_procedure(procedure_id: UUID, review: Annotated[Rejection, Body()]) -> Procedure:
    return await services().procedures.reject(caller(router), procedure_id, review.rejection_reason, review.version)


@router.get("/procedures/<procedure_id>/review")
async def get_review(procedure_id: UUID) -> Review:
    return await services().procedure_review.of(caller(router), procedure_id)


@router.get("/procedures/<procedure_id>/versions")
async def list_versions(procedure_id: UUID) -> list[ProcedureVersion]:
    return await services().procedures.versions(caller(router), procedure_id)


@router.post("/procedures/<procedure_id>/rollback")
async def roll_back(procedure_id: UUID, to: Annotated[Rollback, Body()]) -> Procedure:
    return await services().procedures.rollback(caller(router), procedure_id, to.version)

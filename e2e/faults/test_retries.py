"""Everything is asked one to fifty times under one key, with crashes in between: one effect, one answer."""

import asyncio
import random
from collections import Counter

import pytest

from e2e.faults.havoc import LONG, Havoc, under_fire
from e2e.faults.load import Plan
from e2e.faults.record import Posted, Verdict
from e2e.harness import Hub
from e2e.requirements import requirement
from e2e.web import path

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
POSTS = 600 if LONG else 60
PLAN = Plan(posters=1, agents=1, pairs=0, rivals=0, readers=2, pause_s=1.0)


async def ask_often(havoc: Havoc, what: tuple[str, object, str], times: int, chance: random.Random) -> str:
    """Ask so often, some at once and some after the other; the id of the one answer."""
    target, body, handle = what
    key, ids, left = f"{havoc.record.seed} {body} {times}", set(), times
    while left:
        at_once = min(left, chance.randint(1, 4))
        asked = [havoc.load.insist("POST", target, body, handle, key) for _ in range(at_once)]
        ids |= {answer.document["id"] for answer in await asyncio.gather(*asked)}
        left -= at_once
        await havoc.load.rest(0.2, havoc.load.over)
    if len(ids) != 1:
        raise Verdict("repeated", f"{body} was answered by {ids}", havoc.record)
    return str(ids.pop())


async def post_often(havoc: Havoc, number: int, times: int, chance: random.Random) -> None:
    """One post; it counts like every other."""
    content, began_s = f"often {number}", asyncio.get_running_loop().time()
    found = await ask_often(havoc, (havoc.load.room.at("messages"), {"content": content}, "often"), times, chance)
    ended_s = asyncio.get_running_loop().time()
    havoc.record.posted[f"often{number}"].append(Posted(found, content, began_s, ended_s))


async def create_often(havoc: Havoc, room: tuple[str, object, str], chance: random.Random) -> None:
    """One room, as often as anything."""
    await ask_often(havoc, room, 50, chance)


@requirement("faults:retries")
async def test_what_is_asked_up_to_fifty_times_is_done_once(fleet: Hub) -> None:
    """Posts and new rooms, sixty of them, while every process is killed again and again."""
    async with under_fire(fleet, seed=50, plan=PLAN) as havoc:
        chance = random.Random(50)
        asking = [
            asyncio.create_task(post_often(havoc, number, 1 + number * 49 // (POSTS - 1), chance))
            for number in range(POSTS)
        ]
        names = [f"often {number}" for number in range(10)]
        rooms = [(path("rooms"), {"name": name}, "often") for name in names]
        asking += [asyncio.create_task(create_often(havoc, room, chance)) for room in rooms]
        while not all(task.done() for task in asking):
            await havoc.kill(havoc.random.choice(list(havoc.victims())))
            await havoc.passes(havoc.random.uniform(0.5, 3.0))
        await asyncio.gather(*asking)
        await havoc.all_well()
        listed = Counter(room["name"] for room in fleet.api.get(path("rooms")).ok(200).json["items"])
        assert {name: listed[name] for name in names} == dict.fromkeys(names, 1)

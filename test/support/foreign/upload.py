"""Uploads a file with the HTTP client of aiohttp, under the name that the test gives. See whip.py."""

import asyncio

import aiohttp

from whip import commands, fault, say


async def upload(server, key, path, name):
    form = aiohttp.FormData()
    with open(path, "rb") as file:
        form.add_field("file", file, filename=name, content_type="video/mp4")
        async with aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {key}"}
            async with session.post(f"{server}/v1/upload", data=form, headers=headers) as answer:
                return {"status": answer.status, "body": await answer.json()}


for command in commands():
    command.pop("do")
    try:
        say(**asyncio.run(upload(**command)))
    except Exception:
        say(**fault())

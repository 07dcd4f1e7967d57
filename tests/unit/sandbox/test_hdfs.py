"""When a DataNode counts as ready, by what it and its NameNode say of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.services.hdfs import DataNode, Family, NameNode
from sandbox.state import State

REGISTERED = {"BPServiceActorInfo": json.dumps([{"ActorState": "RUNNING"}])}


def said(live: Mapping[str, Any], safe_mode: str = "") -> dict[str, Any]:
    """What a NameNode says."""
    return {"LiveNodes": json.dumps(live), "Safemode": safe_mode}


@pytest.mark.parametrize(
    ("datanode", "namenode", "missing"),
    [
        (None, None, "it does not answer"),
        ({}, None, "it is not registered with the NameNode"),
        (REGISTERED, said({}), "namenode counts no live DataNode"),
        # For a moment after its registration no file can be written.
        (REGISTERED, said({"it": {"capacity": 0}}), "namenode does not know yet what room"),
        (REGISTERED, said({"it": {"capacity": 9}}, "on"), "namenode is in safe mode"),
        (REGISTERED, said({"it": {"capacity": 9}}), None),
    ],
)
def test_a_datanode_is_ready_once_a_file_can_be_written(
    tmp_path: Path,
    datanode: dict[str, Any] | None,
    namenode: dict[str, Any] | None,
    missing: str | None,
) -> None:
    told = {
        "Hadoop:service=DataNode,name=DataNodeInfo": datanode,
        "Hadoop:service=NameNode,name=NameNodeInfo": namenode,
    }

    def send(method: str, url: str, query: Mapping[str, str]) -> httpx.Response:
        bean = told[query["qry"]]
        request = httpx.Request(method, url)
        return httpx.Response(200, json={"beans": [] if bean is None else [bean]}, request=request)

    state = State(tmp_path)
    family = Family(Home(tmp_path, state, Ports(state, {})), send=send)
    name_node = NameNode(family)
    node = DataNode(family, name_node)
    names = (*name_node.port_names, *node.port_names)
    family.home.ports.claim(*names)
    family.home.ports.release(*names)
    found = node.missing()
    assert found == missing if missing is None else (found or "").startswith(missing)

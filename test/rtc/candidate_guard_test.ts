import assert from "node:assert/strict";
import { ipNetwork } from "../../src/base/ip_address.ts";
import { candidateGuard, type Interfaces } from "../../src/rtc/candidate_guard.ts";

const INTERFACES: Interfaces = {
  lo: [{ address: "127.0.0.1", cidr: "127.0.0.1/8" }, { address: "::1", cidr: "::1/128" }],
  eth0: [{ address: "192.168.7.20", cidr: "192.168.7.20/24" }, { address: "fd12::20", cidr: "fd12::20/64" }],
  eth1: [{ address: "10.1.2.3", cidr: "10.1.2.3/16" }],
};

function allowed(
  listenHost: string,
  addresses: readonly string[],
  allowedNetworks: readonly string[] = [],
  sender = { isOnLoopback: true },
) {
  const rules = { listenHost, allowedNetworks: allowedNetworks.map((text) => ipNetwork(text)!) };
  const isAllowed = candidateGuard(rules, INTERFACES);
  return addresses.filter((address) => isAllowed(address, sender));
}

const NEVER = [
  ...["169.254.169.254", "169.254.1.1", "fe80::1", "::ffff:169.254.169.254"], // link-local
  ...["224.0.0.1", "239.255.255.250", "ff02::1"], // multicast
  ...["255.255.255.255", "192.168.7.255", "::ffff:192.168.7.255", "10.1.255.255"], // broadcast
  ...["0.0.0.0", "0.1.2.3", "::"], // unspecified
  ...["168.63.129.16", "fd00:ec2::254"], // metadata services
  ...["240.0.0.1", "192.0.2.1", "camera.local", "localhost", ""],
];
const LOOPBACK = ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"];
const ETH0 = ["192.168.7.1", "192.168.7.254", "fd12::1", "::ffff:192.168.7.1"];
const ETH1 = ["10.1.0.1", "10.1.254.7"];
const ELSEWHERE = ["192.168.8.1", "10.2.0.1", "172.16.0.1", "100.64.0.1", "fd13::1"];
const PUBLIC = ["8.8.8.8", "2600::1"];

Deno.test("link-local, multicast, broadcast, unspecified and reserved addresses are never sent to", () => {
  for (const listenHost of ["127.0.0.1", "0.0.0.0", "::", "192.168.7.20"]) {
    assert.deepEqual(allowed(listenHost, NEVER, ["0.0.0.0/0", "::/0", "192.168.7.0/24"]), []);
  }
});

Deno.test("loopback is sent to where the service listens on it", () => {
  for (const listenHost of ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::"]) {
    assert.deepEqual(allowed(listenHost, LOOPBACK), LOOPBACK, listenHost);
  }
  assert.deepEqual(allowed("192.168.7.20", LOOPBACK), []);
  assert.deepEqual(allowed("192.168.7.20", LOOPBACK, ["127.0.0.0/8"]), []);
});

Deno.test("loopback is not sent to for a publisher elsewhere", () => {
  for (const listenHost of ["127.0.0.1", "::1", "localhost", "0.0.0.0", "::"]) {
    const addresses = [...LOOPBACK, ...PUBLIC];
    assert.deepEqual(allowed(listenHost, addresses, ["127.0.0.0/8"], { isOnLoopback: false }), PUBLIC);
  }
});

Deno.test("private addresses are sent to in the networks of the listener and in those that are allowed", () => {
  const all = [...ETH0, ...ETH1, ...ELSEWHERE];
  assert.deepEqual(allowed("127.0.0.1", all), []);
  assert.deepEqual(allowed("10.1.2.3", all), ETH1);
  assert.deepEqual(allowed("0.0.0.0", all), [...ETH0, ...ETH1]);
  assert.deepEqual(allowed("127.0.0.1", all, ["172.16.0.0/12", "fd13::/16"]), ["172.16.0.1", "fd13::1"]);
});

Deno.test("public addresses are always sent to", () => {
  for (const listenHost of ["127.0.0.1", "0.0.0.0", "10.1.2.3"]) {
    assert.deepEqual(allowed(listenHost, PUBLIC), PUBLIC);
  }
});

Deno.test("the networks of this machine are its own", () => {
  assert.ok(
    candidateGuard({ listenHost: "0.0.0.0", allowedNetworks: [] })("127.0.0.1", { isOnLoopback: true }),
  );
});

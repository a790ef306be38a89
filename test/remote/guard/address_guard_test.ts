import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld, type World } from "../../../src/base/world.ts";
import { addressScope, ipNetwork, isPublicAddress } from "../../../src/base/ip_address.ts";
import {
  AddressRefused,
  checkedAddresses,
  checkedTarget,
  type Resolve,
} from "../../../src/remote/guard/address_guard.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const PUBLIC = "93.184.216.34";

Deno.test("an address is public, private or unusable", () => {
  const check = (addresses: string, expected: ReturnType<typeof addressScope>) => {
    for (const address of addresses.trim().split(/\s+/)) {
      assert.equal(addressScope(address), expected, address);
      assert.equal(isPublicAddress(address), expected === "public", address);
      if (
        /^\d+(\.\d+){3}$/.test(address) &&
        address.split(".").every((part) => part === String(Number(part) & 255))
      ) {
        // An IPv4 address inside an IPv6 address has the same scope.
        const [a, b, c, d] = address.split(".").map((part) => Number(part).toString(16).padStart(2, "0"));
        assert.equal(addressScope(`::ffff:${address}`), expected, `mapped ${address}`);
        assert.equal(addressScope(`::FFFF:${a}${b}:${c}${d}`), expected, `mapped hexadecimal ${address}`);
        assert.equal(addressScope(`64:ff9b::${address}`), expected, `NAT64 ${address}`);
        assert.equal(addressScope(`2002:${a}${b}:${c}${d}::1`), expected, `6to4 ${address}`);
        assert.equal(
          addressScope(`::${address}`),
          address === "0.0.0.1" ? "private" : "unusable",
          `compatible ${address}`,
        );
      }
    }
  };
  check(
    `1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255
     128.0.0.1 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0
     192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
     203.0.112.255 203.0.114.0 223.255.255.255`,
    "public",
  );
  check(
    `10.0.0.0 10.0.0.1 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1 127.255.255.255 172.16.0.0
     172.31.255.255 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255`,
    "private",
  );
  check(
    `0.0.0.0 0.0.0.1 0.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255 192.0.0.0 192.0.0.170 192.0.0.255
     192.0.2.0 192.0.2.255 192.88.99.0 192.88.99.1 192.88.99.255 198.51.100.0 198.51.100.255 203.0.113.0
     203.0.113.255 224.0.0.0 224.0.0.251 239.255.255.255 240.0.0.0 250.1.2.3 255.255.255.254 255.255.255.255`,
    "unusable",
  );
  check(
    `2000::1 2001:200::1 2001:4860:4860::8888 2606:4700:4700::1111 2606:4700:4700:0:0:0:0:1111 2A00:1450::1
     2001:db7:ffff::1 2001:db9::1 2003::1 2620:fe::fe 3ffe::1 3fff:1000::1`,
    "public",
  );
  check(
    "::1 0:0:0:0:0:0:0:1 0000:0000:0000:0000:0000:0000:0000:0001 fc00::1 fdff:ffff::1",
    "private",
  );
  check(
    `:: 0:0:0:0:0:0:0:0 ::2 fe80::1 fe80::1%eth0 fe80::1%25eth0 febf::1 fec0::1 feff::1 ff00::1 ff02::1 ff0e::1
     2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:1ff:ffff::1 2001:db8::1
     2001:0db8:85a3::8a2e:0370:7334 3fff::1 3fff:fff::1 100::1 100:0:0:1::1 64:ff9b:1::1 64:ff9b:1::8.8.8.8
     64:ff9b:0:1::8.8.8.8 ::ffff:0:8.8.8.8 1::1 1fff::1 4000::1 5f00::1 e000::1 fe00::1 fbff::1`,
    "unusable",
  );
  check(
    `168.63.129.16 ::ffff:168.63.129.16 64:ff9b::168.63.129.16 2002:a83f:8110::1 100.100.100.200 192.0.0.192
     169.254.169.254 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42`,
    "unusable",
  );
  check(
    `localhost example.com 127.1 1.2.3 1.2.3.4.5 01.2.3.4 1.2.3.04 1.2.3.256 1.2.3.-4 0x7f.0.0.1 0x7f000001 2130706433
     017700000001 1.2.3.4. .1.2.3.4 1..2.3 [::1] [8.8.8.8] ::: 1::2::3 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:8::
     ::12345 ::g 2606:4700::1/64 2606:4700::1.2.3 2606:4700::1.2.3.256 2606:4700::01.2.3.4 2606:4700:1.2.3.4::1 -1 , %`,
    "unusable",
  );
  for (const text of ["", " ", " 8.8.8.8", "8.8.8.8 ", "8.8.8.8\n", "2606:4700::1\n", "8.8.8.8\0"]) {
    assert.equal(addressScope(text), "unusable", JSON.stringify(text));
  }
});

/**
 * The guard's result for a URL: the addresses, or a short form of the reason. The resolver knows only
 * `hosts`.
 */
async function guarded(
  url: string,
  { allowPrivate = false, networks = [] as string[] } = {},
): Promise<string> {
  const hosts: Record<string, string[]> = {
    "example.com": [PUBLIC],
    "xn--bcher-kva.example": [PUBLIC],
    "two.example": [PUBLIC, "2606:4700::1", PUBLIC],
    "mixed.example": [PUBLIC, "10.0.0.1"],
    "inside.example": ["10.0.0.1"],
    "metadata.example": ["169.254.169.254"],
    "six.example": ["2606:4700::1", "fe80::1%eth0"],
    "odd.example": ["127.1"],
    "none.example": [],
    "localhost": ["127.0.0.1", "::1"],
    "localhost.example": [PUBLIC],
    "notlocal": [PUBLIC],
    "printer.local": ["192.168.1.9"],
  };
  const resolve: Resolve = (hostname) =>
    hosts[hostname] ? Promise.resolve(hosts[hostname]) : Promise.reject("ENOTFOUND");
  const parsed = URL.parse(url);
  if (!parsed) return "no URL";
  try {
    const world = realWorld(quietLog());
    const allowedNetworks = networks.map((network) => ipNetwork(network)!);
    const options = { world, allowPrivate, allowedNetworks, resolve, timeoutMs: 3000, signal: NEVER_ABORTED };
    return (await checkedTarget(parsed, options)).join(" ");
  } catch (error) {
    assert.ok(error instanceof AddressRefused, String(error));
    return REASONS.find(([pattern]) => pattern.test(error.message))?.[1] ?? error.message;
  }
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/user name or password/, "user"],
  [/is not a public address$/, "address"],
  [/names this machine/, "local"],
  [/cannot be resolved to public addresses$/, "unresolved"],
  [/valid host/, "host"],
];

Deno.test("a URL is allowed only if every address of its host is", async () => {
  const check = async (url: string, expected: string) => assert.equal(await guarded(url), expected, url);
  for (
    const [url, expected] of [
      ["https://example.com/", PUBLIC],
      ["https://EXAMPLE.com.:8443/a?b#c", PUBLIC],
      ["https://example.com../", PUBLIC],
      ["https://bücher.example/", PUBLIC],
      ["https://two.example/", `${PUBLIC} 2606:4700::1`],
      ["https://93.184.216.34/", PUBLIC],
      ["https://[2606:4700::1]/", "2606:4700::1"],
      ["https://[::ffff:8.8.8.8]/", "::ffff:808:808"],
      ["https://localhost.example/", PUBLIC],
      ["https://notlocal/", PUBLIC],
      ["https://0x5d.184.0xd822/", PUBLIC],
      ["https://user@example.com/", "user"],
      ["https://user:pass@example.com/", "user"],
      ["https://:pass@example.com/", "user"],
      ["https://example.com@10.0.0.1/", "user"],
      ["https://example.com%40@10.0.0.1/", "user"],
      ["https://10.0.0.1\\@example.com/", "address"],
      ["https://10.0.0.1#@example.com/", "address"],
      ["https://mixed.example/", "unresolved"],
      ["https://inside.example/", "unresolved"],
      ["https://metadata.example/", "unresolved"],
      ["https://six.example/", "unresolved"],
      ["https://odd.example/", "unresolved"],
      ["https://none.example/", "unresolved"],
      ["https://unknown.example/", "unresolved"],
      ["https://localhost/", "local"],
      ["https://LOCALHOST/", "local"],
      ["https://localhost./", "local"],
      ["https://localhost../", "local"],
      ["https://a.localhost/", "local"],
      ["https://a.b.LocalHost.:1/", "local"],
      ["https://printer.local/", "local"],
      ["https://printer.LOCAL./", "local"],
      ["https://local/", "local"],
      ["https://%6cocalhost/", "local"],
      ["https://ｌｏｃａｌｈｏｓｔ/", "local"],
      ["https://loc\talhost/", "local"],
      ["https://127.0.0.1/", "address"],
      ["https://127.0.0.1./", "address"],
      ["https://127.1/", "address"],
      ["https://127.0.1/", "address"],
      ["https://0x7f.1/", "address"],
      ["https://0x7F.0x0.0x0.0x1/", "address"],
      ["https://0x7f000001/", "address"],
      ["https://2130706433/", "address"],
      ["https://017700000001/", "address"],
      ["https://0177.0.0.01/", "address"],
      ["https://0177.0x0.0.1/", "address"],
      ["https://127。0。0。1/", "address"],
      ["https://①②⑦.0.0.1/", "address"],
      ["https://%31%32%37.0.0.1/", "address"],
      ["https://0/", "address"],
      ["https://0.0.0.0/", "address"],
      ["https://169.254.169.254/latest/meta-data/", "address"],
      ["https://2852039166/", "address"],
      ["https://0xa9fea9fe/", "address"],
      ["https://[::1]/", "address"],
      ["https://[::]/", "address"],
      ["https://[::ffff:127.0.0.1]/", "address"],
      ["https://[::ffff:7f00:1]/", "address"],
      ["https://[::ffff:a9fe:a9fe]/", "address"],
      ["https://[::127.0.0.1]/", "address"],
      ["https://[64:ff9b::10.0.0.1]/", "address"],
      ["https://[2002:a00:1::]/", "address"],
      ["https://[fd00:ec2::254]/", "address"],
      ["https://[fe80::1%25eth0]/", "no URL"],
      ["https://[fe80::1]/", "address"],
      ["https://[127.0.0.1]/", "no URL"],
      ["https://256.0.0.1/", "no URL"],
      ["https://1.2.3.4.5/", "no URL"],
      ["https:///127.0.0.1/", "address"],
      ["https:127.0.0.1/", "address"],
      // For other schemes the parser keeps the host as written, which another parser could read differently.
      ["rtsp://example.com/", PUBLIC],
      ["rtsp://Example.com/", PUBLIC],
      ["rtsp://127.0.0.1/", "address"],
      ["rtsp://0x7f.1/", "address"],
      ["rtsp://2130706433/", "address"],
      ["rtsp://017700000001/", "address"],
      ["rtsp://%6cocalhost/", "local"],
      ["rtsp://LOCALHOST/", "local"],
      ["rtsp://%31%32%37.1/", "address"],
      ["rtsp://a%2f@example.com/", "user"],
      ["rtsp://example.com%2f.local/", "host"],
      ["rtsp://example.com%3a80/", "host"],
      ["rtsp://256.1/", "host"],
      ["rtsp://1.2.3.4.5/", "host"],
      ["rtsp:///path", "host"],
      ["rtsp:path", "host"],
      ["hls://[::1]/", "address"],
      ["hls://[::ffff:10.0.0.1]/", "address"],
      [`https://${"a".repeat(300)}/`, "host"],
    ] as const
  ) await check(url, expected);
});

Deno.test("the operator's own network is allowed where the operator says so, and nothing else", async () => {
  const check = async (url: string, expected: string) => {
    assert.equal(await guarded(url, { allowPrivate: true }), expected, url);
  };
  await check("http://localhost/", "127.0.0.1 ::1");
  await check("http://printer.local/", "192.168.1.9");
  await check("http://inside.example/", "10.0.0.1");
  await check("http://mixed.example/", `${PUBLIC} 10.0.0.1`);
  await check("http://[::1]/", "::1");
  await check("http://100.64.1.1/", "100.64.1.1");
  await check("http://user@inside.example/", "user");
  await check("http://169.254.169.254/", "address");
  await check("http://0.0.0.0/", "address");
  await check("http://224.0.0.1/", "address");
  await check("http://255.255.255.255/", "address");
  await check("http://metadata.example/", "unresolved");
  await check("http://unknown.example/", "unresolved");
});

Deno.test("a private address is allowed where one of the listed networks holds it, and nothing else", async () => {
  const check = async (networks: string, url: string, expected: string) => {
    assert.equal(await guarded(url, { networks: networks.split(" ") }), expected, `${networks}: ${url}`);
  };
  await check("10.0.0.0/8", "http://inside.example/", "10.0.0.1");
  await check("10.0.0.0/8", "http://mixed.example/", `${PUBLIC} 10.0.0.1`);
  await check("10.0.0.0/32", "http://inside.example/", "unresolved");
  await check("10.255.255.255/8", "http://10.0.0.1/", "10.0.0.1");
  await check("0.0.0.0/0", "http://127.0.0.1/", "127.0.0.1");
  await check("::ffff:10.0.0.0/104", "http://10.1.2.3/", "10.1.2.3");
  await check("10.0.0.0/8", "http://[::ffff:10.0.0.1]/", "::ffff:a00:1");
  await check("10.0.0.0/8", "http://192.168.0.1/", "address");
  await check("fd00::/8", "http://[fd12::1]/", "fd12::1");
  await check("fd00::/8", "http://[fc12::1]/", "address");
  await check("127.0.0.0/8", "http://localhost/", "unresolved"); // it is ::1 as well
  await check("127.0.0.0/8 ::1/128", "http://localhost/", "127.0.0.1 ::1");
  await check("192.168.1.0/24", "http://printer.local/", "192.168.1.9");
  await check("192.168.2.0/24", "http://printer.local/", "unresolved");
  await check("10.0.0.0/8", "http://user@inside.example/", "user");
  for (
    const host of [
      "169.254.169.254",
      "0.0.0.0",
      "224.0.0.1",
      "255.255.255.255",
      "168.63.129.16",
      "100.100.100.200",
    ]
  ) {
    await check("0.0.0.0/0 ::/0", `http://${host}/`, "address");
  }
  for (const host of ["[fe80::1]", "[fd00:ec2::254]", "[ff02::1]", "[::]"]) {
    await check("0.0.0.0/0 ::/0", `http://${host}/`, "address");
  }
  await check("0.0.0.0/0 ::/0", "http://metadata.example/", "unresolved");
});

Deno.test("a host name can be checked without a URL", async () => {
  const check = async (hostname: string, expected: string | RegExp) => {
    const resolve: Resolve = () => Promise.resolve([PUBLIC]);
    const options = {
      world: realWorld(quietLog()),
      allowPrivate: false,
      resolve,
      timeoutMs: 3000,
      signal: NEVER_ABORTED,
    };
    const checked = checkedAddresses(hostname, options);
    if (typeof expected === "string") return assert.deepEqual(await checked, [expected], hostname);
    await assert.rejects(
      checked,
      (error) => error instanceof AddressRefused && expected.test(error.message),
      hostname,
    );
  };
  await check("example.com", PUBLIC);
  await check("2606:4700::1", "2606:4700::1");
  await check("[2606:4700::1]", "2606:4700::1");
  await check("8.8.8.8", "8.8.8.8");
  for (const hostname of ["::1", "[::1]", "127.0.0.1", "0x7f.1"]) {
    await check(hostname, /not a public address/);
  }
  for (
    const hostname of [
      ...[
        "",
        ".",
        "..",
        "example.com:80",
        "example.com/",
        "example.com/@10.0.0.1",
        "a@b",
        "a b",
        "a\tb",
        "a\\b",
      ],
      ...["a#b", "a?b", "[127.0.0.1]", "[::1", "::1]", "[::1]:80", "fe80::1%eth0", "a%2fb", "a\0b"],
    ]
  ) await check(hostname, /valid host/);
});

Deno.test("a resolver that does not answer in time is refused with a reason, and an abort rejects with the caller's reason", async () => {
  const real = realWorld(quietLog());
  const world: World = {
    ...real,
    sleep: (ms, signal) => ms === 3000 ? Promise.resolve() : real.sleep(ms, signal),
  };
  const silent: Resolve = () => new Promise(() => {});
  const options = { world, allowPrivate: false, resolve: silent, timeoutMs: 3000, signal: NEVER_ABORTED };
  await assert.rejects(
    checkedAddresses("slow.example", options),
    /slow.example cannot be resolved within 3 s/,
  );
  const controller = new AbortController();
  const checking = checkedAddresses("slow.example", {
    ...options,
    timeoutMs: 60_000,
    signal: controller.signal,
  });
  controller.abort(new Error("hung up"));
  await assert.rejects(checking, /hung up/);
});

Deno.test("the system's resolver reads /etc/hosts, and finds no address for a name that does not exist", async () => {
  const options = {
    world: realWorld(quietLog()),
    allowPrivate: true,
    timeoutMs: 10_000,
    signal: NEVER_ABORTED,
  };
  assert.ok((await checkedAddresses("localhost", options)).includes("127.0.0.1"), "from /etc/hosts");
  await assert.rejects(checkedAddresses("does-not-exist.invalid", options), /cannot be resolved/);
});

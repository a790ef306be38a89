/** Which methods the client has, and which of them the program of every_method.ts cannot call. */

import { Client } from "../../client/mod.ts";

/** What a caller can use: the methods of the class, without its constructor and getters. */
export const METHODS = Object.entries(
  Object.getOwnPropertyDescriptors(Client.prototype),
)
  .filter(([name, { value }]) => typeof value === "function" && name !== "constructor").map(([name]) => name);

/** What needs a browser: see browser_test.ts. */
export const IN_BROWSERS = ["publish"];

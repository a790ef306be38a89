/** Names of shapes that stand in several others: the API description has each of them once, and generated
 * clients one class of it.
 */

import * as z from "zod";
import type { ZodType } from "zod";

const SHAPES = new Map<string, ZodType>();

/** Gives `shape` a name in the API description, and returns it. Errors: a name that another shape has. */
export function named<Shape extends ZodType>(name: string, shape: Shape): Shape {
  if (SHAPES.has(name)) throw new Error(`two shapes are named ${name}`);
  SHAPES.set(name, shape);
  return shape;
}

const ENUMS = new Map<readonly string[], ZodType>();

/** The shape of one text of `list`, with a name: the same shape each time. */
export function namedEnum<const List extends readonly [string, ...string[]]>(name: string, list: List) {
  let shape = ENUMS.get(list);
  if (!shape) ENUMS.set(list, shape = named(name, z.enum(list)));
  return shape as z.ZodEnum<{ [Text in List[number]]: Text }>;
}

/** All named shapes whose modules are loaded, by name. */
export function shapesByName(): Readonly<Record<string, ZodType>> {
  return Object.fromEntries(SHAPES);
}

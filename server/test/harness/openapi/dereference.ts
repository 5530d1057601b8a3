import assert from 'node:assert/strict'
import { isObject } from '../../../src/edge/openapi/json-object.ts'

/**
 * An OpenAPI document with every reference replaced by what it refers to. A description beside a reference
 * overrides the one it refers to.
 */
export function dereference(document: unknown): unknown {
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve)
    if (!isObject(value)) return value
    const { $ref, ...others } = value
    const own = Object.entries(others).map(([name, part]) => [name, resolve(part)])
    const target = typeof $ref === 'string' ? resolve(lookUp(document, $ref)) : {}
    assert(isObject(target))
    return { ...target, ...Object.fromEntries(own) }
  }
  return resolve(document)
}

/** Parses a document and resolves its references. */
export function parseDocument(text: string) {
  return JSON.parse(JSON.stringify(dereference(JSON.parse(text))))
}

function lookUp(document: unknown, reference: string): unknown {
  const names = reference.replace(/^#\//, '').split('/')
  const found = names.reduce<unknown>(
    (value, name) => (isObject(value) ? value[name] : undefined),
    document,
  )
  assert(found, `${reference} refers to nothing`)
  return found
}

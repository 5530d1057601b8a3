import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '../..')

type LockedPackage = { link?: boolean; inBundle?: boolean; integrity?: string; resolved?: string }

const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
  readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
)
const installed = Object.entries(lock.packages).filter(([path]) => path.includes('node_modules/'))

test('the lockfile has an integrity hash for every package on every platform', () => {
  assert(installed.length > 100, 'the lockfile lists the packages')
  const unchecked = installed
    // A workspace is a local folder, and a bundled package is part of the package that contains it.
    .filter(([, { link, inBundle }]) => !link && !inBundle)
    .filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))
    .map(([path]) => path)
  assert.deepEqual(unchecked, [])
})

test('the lockfile names no registry, so npm uses the configured one', () => {
  const addresses = installed
    .filter(([, { link, resolved }]) => resolved !== undefined && !link)
    .map(([path]) => path)
  assert.deepEqual(addresses, [])
  const links = installed.filter(([, { link }]) => link).map(([, { resolved }]) => resolved ?? '')
  assert.deepEqual(
    links.filter((target) => target.includes(':')),
    [],
  )
})

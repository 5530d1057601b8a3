import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../../..')

type Names = Record<string, string>

type LockedPackage = {
  /** Only if the package is installed under another name, or is a workspace. */
  name?: string
  version?: string
  license?: string
  integrity?: string
  /** How the project needs it, which differs from how the service does. */
  dev?: boolean
  devOptional?: boolean
  peer?: boolean
  optional?: boolean
  os?: string[]
  dependencies?: Names
  optionalDependencies?: Names
  peerDependencies?: Names
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

export type RuntimePackage = {
  /** Its folder below the project's root, which is its key in the lockfile. */
  path: string
  name: string
  version: string
  license: string
  integrity: string
  /** The install works without it, for example on another platform. */
  isOptional: boolean
  /** npm installs it only on some platforms, so its files may be missing here. */
  isForPlatform: boolean
  /** The paths of the packages that it loads. */
  uses: string[]
  locked: LockedPackage
}

type Lock = { packages: Record<string, LockedPackage> }

/** They build the dashboard's pages. No part of them runs in the service or in the browser. */
const BUILD_TOOLS: ReadonlySet<string> = new Set(['vite', '@vitejs/plugin-react'])

export function readLock(): Lock {
  return JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
}

/** What runs in the service, sorted by path: the server's dependencies, Node and PostgreSQL. */
export function listServerPackages(lock: Lock = readLock()): RuntimePackage[] {
  return listUsed(lock, ['server', ''])
}

/** The same, and what runs in the browser. */
export function listRuntimePackages(lock: Lock = readLock()): RuntimePackage[] {
  return listUsed(lock, ['server', '', 'dashboard'])
}

function listUsed(lock: Lock, workspaces: readonly string[]): RuntimePackage[] {
  const found = new Map<string, RuntimePackage>()
  const add = (path: string, isOptional: boolean) => {
    const known = found.get(path)
    // What is visited again as required makes its own dependencies required, too.
    if (known && (isOptional || !known.isOptional)) return
    const locked = lock.packages[path] ?? {}
    const targets = dependenciesOf(lock, path)
    found.set(path, describePackage(path, { locked, isOptional, targets }))
    for (const target of targets) add(target.path, isOptional || target.isOptional)
  }
  for (const workspace of workspaces) {
    for (const { path, name, isOptional } of dependenciesOf(lock, workspace)) {
      if (!BUILD_TOOLS.has(name)) add(path, isOptional)
    }
  }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

type Target = { path: string; name: string; isOptional: boolean }

function describePackage(
  path: string,
  {
    locked,
    isOptional,
    targets,
  }: { locked: LockedPackage; isOptional: boolean; targets: Target[] },
): RuntimePackage {
  const name = locked.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const { version, license, integrity } = locked
  if (!version || !license || !integrity) {
    throw new Error(`package-lock.json lacks the version, license or integrity of ${path}`)
  }
  const uses = targets.map((target) => target.path)
  const isForPlatform = locked.os !== undefined
  return { path, name, version, license, integrity, isOptional, isForPlatform, uses, locked }
}

function dependenciesOf(lock: Lock, path: string): Target[] {
  const locked = lock.packages[path]
  if (!locked) throw new Error(`package-lock.json has no package ${path}`)
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = locked
  const optionalPeers = locked.peerDependenciesMeta ?? {}
  const required = [
    ...Object.keys(dependencies),
    ...Object.keys(peerDependencies).filter((name) => optionalPeers[name]?.optional !== true),
  ]
  const names = new Set([...required, ...Object.keys(optionalDependencies)])
  return [...names].sort().flatMap((name) => {
    const isOptional = name in optionalDependencies
    const target = findInstalled(lock, path, name)
    if (target === null && !isOptional)
      throw new Error(`${path} needs ${name}, which is not locked`)
    return target === null ? [] : [{ path: target, name, isOptional }]
  })
}

/** The folder from which Node loads a dependency: the closest `node_modules` that has it. */
function findInstalled(lock: Lock, from: string, name: string): string | null {
  for (let folder = from; ;) {
    const path = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`
    if (lock.packages[path]) return path
    if (folder === '') return null
    const end = folder.lastIndexOf('/node_modules/')
    folder = end < 0 ? '' : folder.slice(0, end)
  }
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listServerPackages, readLock, ROOT, type RuntimePackage } from './runtime-packages.ts'

type Manifest = {
  name: string
  version: string
  dependencies: Record<string, string>
  optionalDependencies: Record<string, string>
  allowScripts?: Record<string, boolean> | undefined
}

const WORKSPACE = 'server/'

/** The `package.json` of the npm package: the server's dependencies, and Node as the project installs it. */
export function packageManifest(): Manifest & Record<string, unknown> {
  const [project, server] = ['package.json', 'server/package.json'].map((name): Manifest =>
    JSON.parse(readFileSync(join(ROOT, name), 'utf8')),
  )
  if (!project || !server) throw new Error('package.json is missing')
  return {
    name: 'annals',
    version: server.version,
    description: 'Audit-event service: tamper-evident ledger, queries, signed webhooks, exports.',
    license: 'Apache-2.0',
    type: 'module',
    // The programs start with shell scripts.
    os: ['linux', 'darwin'],
    bin: { annals: 'bin/annals', 'annals-verify': 'bin/annals-verify' },
    dependencies: server.dependencies,
    optionalDependencies: { ...server.optionalDependencies, ...project.optionalDependencies },
    // For npm ci in the folder of the package.
    allowScripts: project.allowScripts,
  }
}

/**
 * The `npm-shrinkwrap.json` of the npm package. npm installs the locked versions of all dependencies, with
 * their hashes, in a folder of the package. A `package-lock.json` would be ignored there.
 */
export function shrinkwrap(): object {
  const { name, version, allowScripts: _, ...manifest } = packageManifest()
  const packages: Record<string, object> = { '': { name, version, ...manifest } }
  const used = listServerPackages(readLock())
  for (const item of used) {
    const {
      dev: _dev,
      devOptional: _both,
      peer: _peer,
      optional: _optional,
      ...locked
    } = item.locked
    for (const path of placesOf(item, used)) {
      if (packages[path]) throw new Error(`Two packages would be installed as ${path}`)
      packages[path] = item.isOptional ? { ...locked, optional: true } : locked
    }
  }
  return { name, version, lockfileVersion: 3, requires: true, packages }
}

/**
 * The server is the root of the npm package, so its own folder of packages takes the place of the project's. If
 * both have a package, the project's version moves into the packages that use it.
 */
function placesOf({ path }: RuntimePackage, used: readonly RuntimePackage[]): string[] {
  if (path.startsWith(WORKSPACE)) return [path.slice(WORKSPACE.length)]
  if (!used.some((other) => other.path === WORKSPACE + path)) return [path]
  return used.filter(({ uses }) => uses.includes(path)).map((user) => `${user.path}/${path}`)
}

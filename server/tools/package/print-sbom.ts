import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listRuntimePackages, ROOT, type RuntimePackage } from './runtime-packages.ts'

/**
 * A software bill of materials in CycloneDX 1.6: the packages that run in the service or in the browser. It has
 * no time and no serial number, so it changes only with the lockfile.
 */
export function sbomText(): string {
  const packages = listRuntimePackages()
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(ROOT, 'server/package.json'), 'utf8'),
  )
  const byPath = new Map(packages.map((item) => [item.path, purlOf(item)]))
  const byPurl = Map.groupBy(packages, purlOf)
  const purls = [...byPurl.keys()].sort()
  const service = `pkg:npm/annals@${version}`
  const dependencies = purls.map((ref) => {
    const uses = (byPurl.get(ref) ?? []).flatMap((item) =>
      item.uses.map((path) => byPath.get(path) ?? ''),
    )
    return { ref, dependsOn: [...new Set(uses)].sort() }
  })
  const sbom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': service,
        name: 'annals',
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
        purl: service,
      },
    },
    components: purls.flatMap((purl) => byPurl.get(purl)?.slice(0, 1).map(componentOf) ?? []),
    dependencies: [{ ref: service, dependsOn: purls }, ...dependencies],
  }
  return `${JSON.stringify(sbom, null, 2)}\n`
}

function componentOf(item: RuntimePackage): object {
  const { name, version, license, integrity, isOptional } = item
  const [group, rest] = name.startsWith('@') ? name.split('/') : [undefined, name]
  const purl = purlOf(item)
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group ? { group } : {}),
    name: rest,
    version,
    scope: isOptional ? 'optional' : 'required',
    hashes: [{ alg: 'SHA-512', content: sha512Of(integrity) }],
    licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }],
    purl,
  }
}

function purlOf({ name, version }: RuntimePackage): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

function sha512Of(integrity: string): string {
  return Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex')
}

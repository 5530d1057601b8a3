import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listRuntimePackages, ROOT, type RuntimePackage } from './runtime-packages.ts'

const LICENSE_FILE = /^(licen[cs]e|copying|copyrightnotice|notice)/i
const RULE = '-'.repeat(80)
const INTRODUCTION = `Annals
Licensed under the Apache License, Version 2.0. See the file LICENSE.

Annals runs with the packages below. A package is followed by its license files. Packages with the
same files are listed together.
`

/**
 * The licenses of all packages that run in the service or in the browser. The text depends only on the lockfile
 * and on files that npm installs on every platform.
 */
export function noticeText(): string {
  const packages = listRuntimePackages()
  const common = packages.filter(({ isForPlatform }) => !isForPlatform)
  const byFiles = Map.groupBy(common, licenseFilesOf)
  const sections = [...byFiles].map(([text, owners]) => {
    const files = text === '' ? 'The package contains no license file.' : text
    return `${[...new Set(owners.map(titleOf))].join('\n')}\n\n${files}\n`
  })
  const programs = packages.filter(({ isForPlatform }) => isForPlatform).map(titleOf)
  const platforms = `${programs.join('\n')}\n
Programs for one platform each: Node and PostgreSQL. Each package contains its own license files.\n`
  return [INTRODUCTION, ...sections, platforms].join(`\n${RULE}\n\n`)
}

function titleOf({ name, version, license }: RuntimePackage): string {
  return `${name} ${version} (${license})`
}

function licenseFilesOf({ path }: RuntimePackage): string {
  const folder = join(ROOT, path)
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && LICENSE_FILE.test(entry.name))
    .map(({ name }) => name)
  return names
    .sort()
    .map((name) => normalize(readFileSync(join(folder, name), 'utf8')))
    .join('\n\n')
}

/** Packages with the same text often differ in their line ends. */
function normalize(text: string): string {
  return text
    .replaceAll(/[^\S\n]+$/gm, '')
    .replace(/^\n+/, '')
    .trimEnd()
}

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { runCommandInHost } from '../harness/app/command-host.ts'

const SHELLS = ['bash', 'zsh', 'fish']
const folder = await mkdtempDisposable(join(tmpdir(), 'annals-completion-'))
after(() => folder.remove())
const scripts = new Map<string, string>()
for (const shell of SHELLS) {
  const { code, stdout } = await runCommandInHost(['completion', shell])
  assert.equal(code, 0)
  scripts.set(shell, stdout)
  writeFileSync(join(folder.path, shell), stdout)
}
mkdirSync(join(folder.path, 'backups'))

/** What bash offers for the last word of this line. */
function complete(line: string): string[] {
  const words = line.split(' ')
  const script = `
    source "$0"
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _annals
    printf '%s\\n' "\${COMPREPLY[@]}"`
  const given = ['--norc', '-c', script, join(folder.path, 'bash'), ...words]
  const text = execFileSync('bash', given, { encoding: 'utf8', cwd: folder.path })
  return text.split('\n').filter((word) => word !== '')
}

test('bash completes commands, the commands below them, and their options', () => {
  for (const name of ['serve', 'company', 'config', 'completion', '--help', '--version']) {
    assert(complete('annals ').includes(name), name)
  }
  assert.deepEqual(complete('annals boot'), ['bootstrap'])
  assert.deepEqual(complete('annals company set-'), ['set-plan'])
  assert.deepEqual(complete('annals company set-plan --pl'), ['--plan'])
  assert.deepEqual(complete('annals config print --'), ['--json', '--help'])
})

test('bash completes the values of an option that has choices or is a folder', () => {
  assert.deepEqual(complete('annals serve --role '), ['all', 'api', 'worker'])
  assert.deepEqual(complete('annals company set-plan --plan E'), ['ENTERPRISE'])
  assert.deepEqual(complete('annals completion z'), ['zsh'])
  assert.deepEqual(complete('annals backup --to back'), ['backups'])
  assert.deepEqual(complete('annals user reset-link --email '), [])
})

test('a value that is the name of a command does not change what follows', () => {
  assert.deepEqual(complete('annals bootstrap --project serve --pl'), ['--plan'])
})

for (const shell of SHELLS) {
  test(`the script for ${shell} has every command and is valid, as far as this machine can tell`, () => {
    const script = scripts.get(shell) ?? ''
    for (const path of ['annals company set-plan', 'annals backup', 'annals completion']) {
      assert(script.includes(path), path)
    }
    if (hasProgram(shell)) execFileSync(shell, ['-n', join(folder.path, shell)])
  })
}

const needsFish = !hasProgram('fish') && 'fish is not installed'

test('fish completes commands, options and their values', { skip: needsFish }, () => {
  const script = join(folder.path, 'fish')
  const completeWithFish = (line: string) => {
    const program = `source ${script}; complete -C "${line}"`
    const listed = execFileSync('fish', ['--no-config', '-c', program], { encoding: 'utf8' })
    return listed
      .trim()
      .split('\n')
      .map((row) => row.split('\t')[0])
  }
  assert.deepEqual(completeWithFish('annals ev'), ['events'])
  assert(completeWithFish('annals events list --').includes('--filter'))
  assert.deepEqual(completeWithFish('annals exports create --format '), ['CSV', 'JSONL'])
})

function hasProgram(name: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`])
    return true
  } catch {
    return false
  }
}

test('an unknown shell is rejected with the known ones', async () => {
  const { code, stderr } = await runCommandInHost(['completion', 'tcsh'])
  assert.equal(code, 1)
  assert.match(stderr, /bash, zsh, fish/)
})

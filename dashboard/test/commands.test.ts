import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Command, filterCommands, readEventId } from '../src/shell/palette/commands.ts'

const command = (label: string, isAlways = false): Command => ({
  key: label,
  label,
  group: 'Page',
  icon: 'search',
  ...(isAlways && { isAlways }),
  run: () => {},
})

test('every typed word must be in the label, and labels that start with the text come first', () => {
  const all = ['Event types', 'Deleted events', 'Keys'].map((label) => command(label))
  const found = (typed: string) => filterCommands(all, typed).map(({ label }) => label)
  assert.deepEqual(found('EVENT'), ['Event types', 'Deleted events'])
  assert.deepEqual(found('events del'), ['Deleted events'])
  assert.deepEqual(found(' '), ['Event types', 'Deleted events', 'Keys'])
  assert.deepEqual(found('nothing'), [])
})

test('a command made from the typed text comes last', () => {
  const all = [command('Search for key', true), command('Keys')]
  assert.deepEqual(
    filterCommands(all, 'key').map(({ label }) => label),
    ['Keys', 'Search for key'],
  )
  assert.equal(filterCommands(all, 'zzz').length, 1)
})

test('recognizes only a whole UUID as an event ID', () => {
  const id = '0199A2B3-1111-7222-8333-444455556666'
  assert.equal(readEventId(` ${id} `), id.toLowerCase())
  assert.equal(readEventId(id.slice(1)), null)
})

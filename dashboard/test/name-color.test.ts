import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assignSlots, NAME_COLORS, OTHERS_COLOR } from '../src/parts/chart/name-color.ts'

const SURFACES = { light: '#ffffff', dark: '#16181d' }
const NAMES = ['auth', 'billing', 'documents', 'members', 'security', 'orders', 'search', 'ops']

test('every series color has a contrast of at least 3:1 with the page in both themes', () => {
  for (const scheme of ['light', 'dark'] as const) {
    for (const color of [...NAME_COLORS[scheme], OTHERS_COLOR[scheme]]) {
      assert(contrastOf(color, SURFACES[scheme]) >= 3, `${color} in the ${scheme} theme`)
    }
    assert.equal(new Set([...NAME_COLORS[scheme], OTHERS_COLOR[scheme]]).size, 17)
  }
})

test('names shown together have different colors, whatever their order', () => {
  const slots = assignSlots(new Map(), NAMES)
  assert.equal(new Set([...slots.values()].map((slot) => slot % 8)).size, 8, 'eight hues')
  assert.deepEqual(assignSlots(new Map(), NAMES.toReversed()), slots)
})

test('a name keeps its color whatever names appear later', () => {
  const slots = assignSlots(new Map(), NAMES.slice(2))
  const later = assignSlots(slots, [...NAMES, ...Array.from({ length: 90 }, (_, nth) => `n${nth}`)])
  for (const [key, slot] of slots) assert.equal(later.get(key), slot)
})

test('remembers a limited number of names', () => {
  const names = Array.from({ length: 900 }, (_, nth) => `name-${nth}`)
  assert.equal(assignSlots(new Map(), names).size, 500)
})

function contrastOf(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

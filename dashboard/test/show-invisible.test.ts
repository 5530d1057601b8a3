import assert from 'node:assert/strict'
import { test } from 'node:test'
import { showInvisible } from '../src/parts/text/show-invisible.ts'

test('characters that reverse or hide text are shown as their code points', () => {
  for (const [text, shown] of [
    ['invoice\u202efdp.exe', 'invoice⟨U+202E⟩fdp.exe'],
    ['\u2066ana\u2069', '⟨U+2066⟩ana⟨U+2069⟩'],
    ['ana\u200b@acme.example', 'ana⟨U+200B⟩@acme.example'],
    ['\ufeffana', '⟨U+FEFF⟩ana'],
    ['a\u0000b\u001bc\u0085d', 'a⟨U+0000⟩b⟨U+001B⟩c⟨U+0085⟩d'],
    ['admin\u3164', 'admin⟨U+3164⟩'],
    ['x\u{e0041}', 'x⟨U+E0041⟩'],
    ['pay\u200d', 'pay⟨U+200D⟩'],
  ] as const) {
    assert.equal(showInvisible(text), shown)
  }
})

test('ordinary text in any script is shown unchanged', () => {
  for (const text of [
    'invoice.deleted',
    'שלום',
    'مرحبا',
    'می\u200cخواهم',
    'क्\u200dष',
    '👩\u200d👩\u200d👧',
    '🏳️\u200d🌈',
    'a\tb\nc',
    '⟨U+202E⟩',
  ]) {
    assert.equal(showInvisible(text), text)
  }
})

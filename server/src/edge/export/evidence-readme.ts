import type { Static } from 'typebox'
import type { ExportManifest } from '../schema/export-manifest.ts'

type Manifest = Pick<
  Static<typeof ExportManifest>,
  'jobId' | 'format' | 'filters' | 'rows' | 'sha256' | 'evidence'
>

/** The page in an evidence pack that tells an auditor how to check it. */
export function evidenceReadme(
  { jobId, format, filters, rows, sha256, evidence }: Manifest,
  { file, origins }: { file: string; origins: readonly string[] },
): string {
  const command = `node annals-verify.mjs export ${file} --manifest manifest.json`
  return `Annals evidence pack
====================

This archive contains events of an audit log, and what you need to check them
offline, without an account.

  ${file.padEnd(18)} The events: ${rows.toLocaleString('en-US')} ${rows === 1 ? 'row' : 'rows'}.
  manifest.json      Links the events to the signed ledger.
  annals-verify.mjs  The verifier: one file, for Node 18 or later. It opens no
                     network connections and writes no files.
  README.txt         This page.

How to check it
---------------

1. Get the key of each ledger from the operator, in a way that you trust, such
   as in a meeting or from their website. Don't use the key in manifest.json:
   someone who replaced the events could have replaced it too.

${origins.length === 0 ? '     The export has no events, so there is no ledger to check.\n' : origins.map((origin) => `     ${origin}\n`).join('')}
2. Run this in the folder of these files, with one --vkey per ledger:

     ${command} --vkey "KEY"

3. Read the result, including the list "Not proven".

     Exit code 0, PROVEN        All checks passed.
     Exit code 1, TAMPERED      Something was changed. The output says what.
     Exit code 2, CANNOT JUDGE  A file or a key is missing or doesn't match.

The verifier in this archive comes from the same place as the events. To rely on
nothing but your own copy, get it from the source code of Annals.

What it contains
----------------

  Export    ${jobId}
  Filters   ${Object.keys(filters).length === 0 ? 'none' : JSON.stringify(filters)}
  Evidence  ${EVIDENCE_TEXTS[evidence]}
  SHA-256   ${sha256} (${file})

The manifest is not signed. Compare the filters with those you asked for.
${format === 'CSV' ? '\nA CSV file has no commitments, so the result is CANNOT JUDGE if its\nSHA-256 matches the manifest. To prove events, export JSONL.\n' : ''}
docs/proof.md and docs/chain-format.md of Annals explain what each check proves,
and how to write your own verifier.
`
}

const EVIDENCE_TEXTS: Record<Manifest['evidence'], string> = {
  COMPLETE: 'COMPLETE: no matching event in the range is missing',
  MEMBERSHIP:
    'MEMBERSHIP: the last event is proven, and those connected with it; others may be missing',
  NONE: 'NONE: no evidence of completeness was requested',
}

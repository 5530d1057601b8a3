import { benchArchive } from './archive.ts'
import { benchConsole } from './console.ts'
import { benchExport } from './export.ts'
import { benchFeed } from './feed.ts'
import { benchIngest } from './ingest.ts'
import { benchMetadata } from './metadata.ts'
import { benchProof } from './proof.ts'
import { benchQuery } from './query.ts'
import { benchSdk } from './sdk.ts'
import { benchVerifier } from './verifier.ts'
import { benchVerify } from './verify.ts'
import { benchWebhooks } from './webhooks.ts'

/** `npm run bench -- <name>`: black-box benchmarks, each of which also verifies what it wrote. */
const BENCHES: Record<string, (only: string | undefined) => Promise<void>> = {
  ingest: benchIngest,
  query: benchQuery,
  metadata: benchMetadata,
  feed: benchFeed,
  webhooks: benchWebhooks,
  export: benchExport,
  console: benchConsole,
  archive: benchArchive,
  proof: benchProof,
  verifier: benchVerifier,
  verify: benchVerify,
  sdk: benchSdk,
}

const [name = '', only] = process.argv.slice(2)
const bench = BENCHES[name]
if (bench) {
  await bench(only)
} else {
  process.stderr.write(`usage: npm run bench -- ${Object.keys(BENCHES).join('|')}\n`)
  process.exitCode = 1
}

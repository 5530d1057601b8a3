import { randomBytes } from 'node:crypto'
import type { TestDatabase } from '../database/template-db.ts'
import { AnnalsProcess } from './annals-process.ts'

/** The service uses half of them for connections. */
export const OPEN_FILES_MAX = 300

type LimitedService = AsyncDisposable & { process: AnnalsProcess; url: string; metricsUrl: string }

/** Starts a service that can open only a few files, so that a test can use up its connections. */
export async function startLimitedService(
  database: TestDatabase,
  env: Record<string, string> = {},
): Promise<LimitedService> {
  await using stack = new AsyncDisposableStack()
  const service = stack.use(
    new AnnalsProcess(
      ['serve', '--role', 'api'],
      {
        ANNALS_DATABASE_URL: database.url,
        ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
        ANNALS_PORT: '0',
        ANNALS_METRICS_PORT: '0',
        ...env,
      },
      ['sh', '-c', `ulimit -n ${OPEN_FILES_MAX}; exec "$@"`, 'sh'],
    ),
  )
  const [, url = '', metricsUrl = ''] = await service.printed(
    /"event":"service.started".*"url":"([^"]+)","metricsUrl":"([^"]+)"/,
  )
  const started = stack.move()
  const dispose = () => started.disposeAsync()
  return { process: service, url, metricsUrl, [Symbol.asyncDispose]: dispose }
}

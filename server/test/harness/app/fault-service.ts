import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { startEngine } from '../../../src/platform/engine/embedded-postgres.ts'
import { assertId } from '../../../src/platform/id.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import { Database } from '../../../src/platform/pg/database.ts'
import { Secret } from '../../../src/platform/secret/secret.ts'
import { webhookSecretBox } from '../../../src/outlet/webhook/secret/webhook-secret.ts'
import { AnnalsProcess, type Outcome, runAnnals } from './annals-process.ts'
import { EngineFolder } from '../database/engine.ts'
import { assertLedgerHolds } from '../event/ledger-oracle.ts'
import { Load, type Target } from '../event/load.ts'
import { type CallOptions, type TestResponse, call, createCompanyIn } from './start-app.ts'
import { insertTestWebhook } from '../webhook/webhooks.ts'

const WORKSPACES = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'] as const
const WORKSPACES_PER_LOAD = 4
/** Fixed here, so that a test can encrypt a webhook secret for the service. */
const SECRET_KEY = randomBytes(32)

/** `bin/annals serve` with the embedded engine in its own folder, which tests kill and restart. */
export class FaultService implements AsyncDisposable {
  readonly folder = EngineFolder.prepared()
  readonly #env: Record<string, string> = {
    ANNALS_DATA_DIR: this.folder.dataDir,
    ANNALS_PORT: '0',
    ANNALS_RATE_LIMITS: 'off',
    ANNALS_LOG_LEVEL: 'error',
    ANNALS_SECRET_KEY: SECRET_KEY.toString('base64'),
    ANNALS_WEBHOOK_DESTINATIONS: 'any',
  }
  #companyId = ''
  #process: AnnalsProcess | null = null
  #url = ''
  #targets: readonly Target[] = []

  /** With variables that differ from the usual ones. */
  static async start(env: Record<string, string> = {}): Promise<FaultService> {
    await using stack = new AsyncDisposableStack()
    const service = stack.use(new FaultService())
    Object.assign(service.#env, env)
    await service.restart()
    const { dataDir } = service.folder
    await using engine = await startEngine({ dataDir, exclusive: false })
    const { company, workspaces } = await createCompanyIn(engine, {
      plan: 'PRO',
      workspaces: WORKSPACES,
    })
    service.#targets = workspaces
    service.#companyId = company.id
    stack.move()
    return service
  }

  /** Starts the service on its folder. It must not be running. */
  async restart(): Promise<void> {
    this.#process = new AnnalsProcess(['serve'], this.#env)
    const [, url = ''] = await this.#process.printed(/Annals is running at (http:\S+)/)
    this.#url = url
  }

  /** The running `bin/annals serve`. */
  get process(): AnnalsProcess {
    assert(this.#process)
    return this.#process
  }

  /** `kill -9`; resolves when the process is gone. */
  async kill(): Promise<void> {
    this.#process?.signal('SIGKILL')
    await this.#process?.exited
  }

  killPostmaster(): void {
    process.kill(this.folder.postmasterPid(), 'SIGKILL')
  }

  /** Starts a load on workspaces that no other load of this service has used. */
  load(): Load {
    const targets = this.#targets.slice(0, WORKSPACES_PER_LOAD)
    assert.equal(targets.length, WORKSPACES_PER_LOAD)
    this.#targets = this.#targets.slice(WORKSPACES_PER_LOAD)
    return new Load({ url: () => this.#url, targets })
  }

  /** A workspace that no load of this service uses. */
  takeWorkspace(): Target {
    const [target, ...others] = this.#targets
    assert(target)
    this.#targets = others
    return target
  }

  /** The port can differ after each start. */
  get url(): string {
    return this.#url
  }

  async call(method: string, path: string, options?: CallOptions): Promise<TestResponse> {
    return await call(`${this.#url}${path}`, method, options)
  }

  /** Runs a command on the same folder, as an operator would alongside the service. */
  async run(...args: string[]): Promise<Outcome> {
    return await this.runWith({}, ...args)
  }

  /** The same, with variables that differ. */
  async runWith(env: Record<string, string>, ...args: string[]): Promise<Outcome> {
    return await runAnnals(args, { ...this.#env, ...env })
  }

  /** Creates a webhook in each workspace that no load has used, all with the same receiver. */
  async createWebhooks(url: string): Promise<void> {
    await using engine = await startEngine({ dataDir: this.folder.dataDir, exclusive: false })
    const { connection } = engine
    const logger = createLogger('silent')
    await using database = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
    const companyId = assertId<'company'>(this.#companyId)
    for (const { id } of this.#targets) {
      await insertTestWebhook(database.db, {
        box: webhookSecretBox(new Secret(SECRET_KEY)),
        companyId,
        workspaceId: assertId(id),
        url,
      })
    }
  }

  /** Runs the oracle and `annals verify`. */
  async assertHolds(load: Load): Promise<void> {
    await using engine = await startEngine({ dataDir: this.folder.dataDir, exclusive: false })
    await assertLedgerHolds(engine.connection, [load])
    await this.assertVerifies()
  }

  async assertVerifies(): Promise<void> {
    const { code, stdout, stderr } = await this.run('verify')
    assert.equal(code, 0, stdout + stderr)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.[Symbol.asyncDispose]()
    await this.folder[Symbol.asyncDispose]()
  }
}

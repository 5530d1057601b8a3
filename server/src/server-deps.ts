import type { Config } from './config.ts'
import { ClientAddresses } from './edge/auth/client-address.ts'
import { createKeyAccess } from './edge/auth/key-access.ts'
import { KeyCache } from './edge/auth/key-cache.ts'
import { KeyGuard } from './edge/auth/require-key.ts'
import { SessionGuard } from './edge/auth/require-session.ts'
import { openIdentityProvider } from './edge/auth/oidc/open-identity-provider.ts'
import { SignInCookie } from './edge/auth/oidc/sign-in-cookie.ts'
import { createSessionAccess } from './edge/auth/session-access.ts'
import { DownloadManager } from './edge/export/download-manager.ts'
import type { DownloadLimits } from './edge/export/download-slots.ts'
import { ResponseDelays } from './edge/http/throttle/delay-responses.ts'
import { RequestSlots } from './edge/http/request-slots.ts'
import type { ServerDeps } from './edge/server.ts'
import { ColdCache } from './ledger/segment/cold-cache.ts'
import type { ChainReads } from './ledger/replica/chain-reads.ts'
import type { ExportTimeouts } from './outlet/export/export-timeouts.ts'
import { FirstCheckpoints } from './outlet/proof/first-checkpoints.ts'
import type { TreeSigner } from './outlet/proof/signer.ts'
import { CursorCodec } from './platform/cursor.ts'
import type { ObjectStore } from './platform/object-store/object-store.ts'
import type { Database } from './platform/pg/database.ts'
import { requestShare } from './platform/scheduling/time-slice.ts'
import type { Secret } from './platform/secret/secret.ts'
import type { MonotonicClock } from './platform/time/clock.ts'
import { compileRanges } from './tenancy/allowlist.ts'
import type { ServiceAudit } from './tenancy/caller.ts'
import { findKeyByKid } from './tenancy/key/key-store.ts'
import { ProjectCache } from './tenancy/workspace/project-cache.ts'
import { secondFactorBox } from './tenancy/sign-in/use-second-factor.ts'
import { listProjectIds } from './tenancy/workspace/workspace-store.ts'

/**
 * For reads of a row or two: the status of a key, and the projects of a workspace when an event names
 * an unknown one. They have separate slots, so that a company with slow queries can still send events.
 */
const SMALL_READS = { permitsMax: 4, permitsPerCompanyMax: 2 }

type Parts = Pick<
  ServerDeps,
  | 'logger'
  | 'clock'
  | 'monotonic'
  | 'metrics'
  | 'tracer'
  | 'connections'
  | 'output'
  | 'keyUse'
  | 'writer'
  | 'pagesFolder'
  | 'mailer'
  | 'login'
  | 'box'
  | 'destinationRules'
  | 'wakeDispatcher'
  | 'wakeVerifier'
  | 'liveTail'
  | 'feedWaiters'
  | 'searches'
  | 'downloadBytesMax'
  | 'refusals'
  | 'hasArchive'
> & {
  signer: TreeSigner | null
  config: Config
  database: Database
  reads: ChainReads
  /** For small queries about keys and sessions, and for readiness checks. */
  accessDatabase: Database
  secretKey: Secret<Buffer>
  archive: ObjectStore
  exportTimeouts: ExportTimeouts
  downloadLimits: DownloadLimits
  audit: ServiceAudit
}

/** Builds the dependencies of the routes. `annals openapi` uses it too, with a database it never queries. */
export function serverDeps({
  config,
  database,
  reads,
  accessDatabase,
  secretKey,
  archive,
  exportTimeouts,
  downloadLimits: limits,
  audit,
  ...parts
}: Parts): ServerDeps {
  const { clock, monotonic, logger, keyUse, writer, tracer } = parts
  const { db, dbFast } = database
  const slots = new RequestSlots({ share: requestShare })
  const exports = {
    database,
    reads,
    archive,
    clock,
    logger,
    timeouts: exportTimeouts,
    audit,
    tracer,
  }
  const projects = cacheProjects(database, monotonic)
  const coldCache = new ColdCache()
  const access = createAccess({ config, accessDatabase, clock, monotonic, logger, keyUse })
  return {
    ...parts,
    ...access,
    ...openSignIn({ config, secretKey, monotonic, logger, publicUrl: access.publicUrl }),
    exports,
    slots,
    statusSlots: new RequestSlots(SMALL_READS),
    downloads: new DownloadManager(exports, { slots, cache: coldCache, limits }),
    coldCache,
    db,
    dbFast,
    reads,
    cursors: new CursorCodec(secretKey),
    factorBox: secondFactorBox(secretKey),
    listUnknownProjects: (workspace, ids) => projects.listUnknown(workspace, ids),
    canReachDatabase: () => accessDatabase.isReachable(),
    canWrite: () => writer.canWrite,
    isDraining: () => false,
    checkpointSeconds: config.checkpointSeconds,
    firstCheckpoints: parts.signer && new FirstCheckpoints(parts.signer, database.timeoutFactor),
  }
}

/** Who may call a route, with a key or with a session. */
function createAccess({
  config,
  accessDatabase: { dbFast: db, timeoutFactor },
  clock,
  monotonic,
  logger,
  keyUse,
}: Pick<Parts, 'config' | 'accessDatabase' | 'clock' | 'monotonic' | 'logger' | 'keyUse'>) {
  const addresses = new ClientAddresses(compileRanges(config.trustedProxies))
  const hasRateLimits = config.rateLimits === 'on'
  const limits = { monotonic, addresses, hasRateLimits, timeoutFactor }
  const keyGuard = new KeyGuard({
    keyCache: new KeyCache((kid) => findKeyByKid(db, kid), monotonic, timeoutFactor),
    keyUse,
    clock,
    ...limits,
  })
  const publicUrl = config.publicUrl?.replace(/\/+$/, '') ?? null
  const delays = new ResponseDelays({ addresses, hasRateLimits })
  const sessionGuard = new SessionGuard({ db, clock, publicUrl, delays, ...limits })
  return {
    keyGuard,
    keyAccess: createKeyAccess(db, logger),
    sessionGuard,
    sessionAccess: createSessionAccess(db, clock, logger),
    cookie: sessionGuard.cookie,
    delays,
    hasRateLimits,
    publicUrl,
  }
}

/** Sign-in with the operator's identity provider, if there is one. */
function openSignIn({
  publicUrl,
  secretKey,
  ...parts
}: Pick<Parts, 'config' | 'secretKey' | 'monotonic' | 'logger'> & { publicUrl: string | null }) {
  const isSecure = publicUrl?.startsWith('https:') === true
  return {
    provider: openIdentityProvider({ ...parts, publicUrl }),
    signInCookie: new SignInCookie({ isSecure, secretKey }),
  }
}

function cacheProjects({ dbFast }: Database, monotonic: MonotonicClock): ProjectCache {
  const slots = new RequestSlots(SMALL_READS)
  return new ProjectCache({
    list: (workspaceId) => listProjectIds(dbFast, workspaceId),
    takeSlot: (companyId) => slots.take(companyId, null),
    clock: monotonic,
  })
}

/** What an operator could tune, by PostgreSQL's own names. Tests make their engines small with it. */
export type EngineSettings = Readonly<Record<string, string>>

const MIB = 1024 * 1024

/** Inside PostgreSQL's folder of sockets; it also names the socket's file. */
export const ENGINE_PORT = 5432

/**
 * PostgreSQL's arguments for these settings. They are passed at each start instead of written into
 * the data folder once, so that a new release's settings reach folders that an old one made.
 */
export function engineArguments(cluster: string, settings: EngineSettings): string[] {
  const pairs = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', cluster, ...pairs]
}

/** `memoryBytes` is what the machine, or the container, has in all. */
export function engineSettings(memoryBytes: number, overrides: EngineSettings): EngineSettings {
  return {
    // No network, ever. The folder is relative to the data folder, so it holds in the engine's
    // own mount namespace too, and a long data path does not hit the limit of a socket's name.
    listen_addresses: '',
    port: String(ENGINE_PORT),
    unix_socket_directories: '../run',
    unix_socket_permissions: '0700',
    max_connections: '100',

    // An answered event must survive a power cut: the defaults, spelled out because they are law.
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',

    shared_buffers: `${sharedBuffersMib(memoryBytes)}MB`,
    huge_pages: 'off',
    // Kept for reuse once written: a fresh log file costs twice a recycled one.
    min_wal_size: '1GB',
    // Each checkpoint makes the next change of every page log the whole page, so they come seldom.
    max_wal_size: '2GB',
    // The packages are built without lz4 and zstd, and pglz costs more than the bytes.
    wal_compression: 'off',
    checkpoint_timeout: '15min',
    random_page_cost: '1.1',
    jit: 'off',

    // A day of files named by the hour, each emptied when its hour comes round.
    logging_collector: 'on',
    log_directory: '../log',
    log_filename: 'postgres-%H.log',
    log_truncate_on_rotation: 'on',
    log_rotation_age: '60',
    log_rotation_size: '0',
    log_min_messages: 'warning',
    log_checkpoints: 'off',
    log_timezone: 'UTC',
    timezone: 'UTC',
    lc_messages: 'C',
    // Statements and details can hold what customers sent; that belongs to the ledger alone.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_parameter_max_length_on_error: '0',
    ...overrides,
  }
}

/** An eighth of the memory: less than a server of its own would take, as the service needs some. */
export function sharedBuffersMib(memoryBytes: number): number {
  return Math.min(512, Math.max(128, Math.floor(memoryBytes / 8 / MIB)))
}

/** PostgreSQL settings by name. Tests use them to make their engines small. */
export type EngineSettings = Readonly<Record<string, string>>

const MIB = 1024 * 1024

/** Only a name within PostgreSQL's socket folder: it determines the name of the socket file. */
export const ENGINE_PORT = 5432

/** Enough for a service with one process, and for commands. */
export const ENGINE_CONNECTIONS_MAX = 100

/**
 * PostgreSQL's arguments for these settings. They are passed at each start rather than written to the data
 * folder once, so that the settings of a new release also apply to existing folders.
 */
export function engineArguments(cluster: string, settings: EngineSettings): string[] {
  const pairs = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', cluster, ...pairs]
}

/** `memoryBytes` is the total memory of the machine or the container. */
export function engineSettings(memoryBytes: number, overrides: EngineSettings): EngineSettings {
  return {
    // Never listen on the network. The socket folder is relative to the data folder, so that it also works
    // in the engine's mount namespace, and a long data path doesn't exceed the limit for socket names.
    listen_addresses: '',
    port: String(ENGINE_PORT),
    unix_socket_directories: '../run',
    unix_socket_permissions: '0700',
    max_connections: String(ENGINE_CONNECTIONS_MAX),

    // An acknowledged event must survive a power failure. These are the defaults,
    // explicit because they are essential.
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',

    shared_buffers: `${sharedBuffersMib(memoryBytes)}MB`,
    huge_pages: 'off',
    // Keep log files for reuse: writing a new one costs twice as much as a recycled one.
    min_wal_size: '1GB',
    // After each checkpoint, the first change to a page logs the whole page, so checkpoints should be rare.
    max_wal_size: '2GB',
    // The packages are built without lz4 and zstd, and pglz costs more than it saves.
    wal_compression: 'off',
    checkpoint_timeout: '15min',
    random_page_cost: '1.1',
    jit: 'off',

    // Keep one day of files named by the hour. Each is truncated when its hour comes again.
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
    // Statements and details can contain customer data, which must be only in the ledger.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_parameter_max_length_on_error: '0',
    ...overrides,
  }
}

/** An eighth of the memory: less than a dedicated server would use, because the service needs some. */
export function sharedBuffersMib(memoryBytes: number): number {
  return Math.min(512, Math.max(128, Math.floor(memoryBytes / 8 / MIB)))
}

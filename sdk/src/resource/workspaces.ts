import type { CallOptions, Connection } from '../client/connection.ts'
import { Pages } from '../client/pages.ts'
import { sendJson } from '../client/send.ts'
import type { EventType, EventTypeFilters, EventTypePage, Project, Workspace } from './types.ts'

/** What the key can see of the company. */
export class Workspaces {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The workspaces by name, with the system workspace last. */
  async list(options?: CallOptions): Promise<Workspace[]> {
    const request = { method: 'GET', path: '/v1/workspaces' } as const
    const { workspaces } = await sendJson<{ workspaces: Workspace[] }>(
      this.#connection,
      request,
      options,
    )
    return workspaces
  }

  get(workspaceId: string, options?: CallOptions): Promise<Workspace> {
    return sendJson(this.#connection, { method: 'GET', path: pathOf(workspaceId) }, options)
  }

  /** The projects of a workspace, by name. */
  async projects(workspaceId: string, options?: CallOptions): Promise<Project[]> {
    const request = { method: 'GET', path: `${pathOf(workspaceId)}/projects` } as const
    const { projects } = await sendJson<{ projects: Project[] }>(this.#connection, request, options)
    return projects
  }

  /** The categories and actions of a workspace, with their metadata keys. */
  eventTypes(
    workspaceId: string,
    filters: EventTypeFilters = {},
    options?: CallOptions,
  ): Pages<EventType, EventTypePage> {
    const path = `${pathOf(workspaceId)}/event-types`
    const read = (cursor: string | undefined): Promise<EventTypePage> => {
      const query = { ...filters, cursor }
      return sendJson(this.#connection, { method: 'GET', path, query }, options)
    }
    return new Pages(read, filters.cursor)
  }
}

function pathOf(workspaceId: string): string {
  return `/v1/workspaces/${encodeURIComponent(workspaceId)}`
}

import { Type } from 'typebox'
import { DateTime, STRICT, Uuid } from './common.ts'
import { ProjectRecord } from './dashboard/company.ts'
import { named } from './named.ts'

/** A workspace as a key sees it. The dashboard's record also counts what it contains. */
export const WorkspaceInfo = named(
  'WorkspaceInfo',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the workspace.' },
      name: Type.String({ description: 'The name of the workspace.' }),
      system: Type.Boolean({
        description:
          "Whether this is the system workspace, which contains the company's audit log. Each company has one.",
      }),
      createdAt: { ...DateTime, description: 'When the workspace was created.' },
    },
    { ...STRICT, description: 'A workspace that the key can see.' },
  ),
)

export const WorkspaceInfoList = named(
  'WorkspaceInfoList',
  Type.Object(
    {
      workspaces: Type.Array(WorkspaceInfo, {
        description: 'The workspaces, by name, with the system workspace last.',
      }),
    },
    { ...STRICT, description: 'The workspaces that the key can see.' },
  ),
)

export const WorkspaceProjects = named(
  'WorkspaceProjects',
  Type.Object(
    { projects: Type.Array(ProjectRecord, { description: 'The projects, by name.' }) },
    { ...STRICT, description: 'The projects of a workspace.' },
  ),
)

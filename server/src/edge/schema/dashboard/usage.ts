import { Type } from 'typebox'
import { Nullable, STRICT, Uuid } from '../common.ts'

const Count = Type.Integer({ minimum: 0 })
const Day = Type.String({ pattern: String.raw`^\d{4}-\d{2}-\d{2}$` })

const USAGE_DAYS_MAX = 400

export const UsageQuery = Type.Object(
  {
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: USAGE_DAYS_MAX,
        default: 30,
        description: 'The number of days in UTC, including today.',
      }),
    ),
    workspaceId: Type.Optional({ ...Uuid, description: 'Only this workspace.' }),
  },
  STRICT,
)

export const UsageRecord = Type.Object(
  {
    days: Type.Array(
      Type.Object(
        {
          day: { ...Day, description: 'The day of receipt, in UTC.' },
          workspaceId: { ...Uuid, description: 'The ID of the workspace.' },
          events: { ...Count, description: 'The number of events.' },
          bytes: { ...Count, description: 'The size of their content, without IDs and hashes.' },
        },
        STRICT,
      ),
      { description: 'Usage per day and workspace. Days without events are omitted.' },
    ),
    eventsLastMinute: { ...Count, description: 'Events received in the last minute.' },
    eventsPerSecondMax: Nullable(
      Type.Integer({
        description: 'Events per second and key that the plan allows. Null for no limit.',
      }),
    ),
  },
  { ...STRICT, description: 'How many events the company sent.' },
)

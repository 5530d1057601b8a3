import { Type } from 'typebox'
import { Nullable, STRICT, Uuid } from '../common.ts'

const Count = Type.Integer({ minimum: 0 })
const Day = Type.String({ pattern: String.raw`^\d{4}-\d{2}-\d{2}$` })

export const USAGE_DAYS_MAX = 400

export const UsageQuery = Type.Object(
  {
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: USAGE_DAYS_MAX,
        default: 30,
        description: 'The last days in UTC, today included.',
      }),
    ),
    workspaceId: Type.Optional(Uuid),
  },
  STRICT,
)

export const UsageRecord = Type.Object(
  {
    days: Type.Array(
      Type.Object(
        {
          day: { ...Day, description: 'Of receipt, in UTC.' },
          workspaceId: Uuid,
          events: Count,
          bytes: { ...Count, description: 'Of what was sent: texts, without ids and hashes.' },
        },
        STRICT,
      ),
      { description: 'Days without events are left out.' },
    ),
    eventsLastMinute: { ...Count, description: 'Received in the last minute.' },
    eventsPerSecondMax: Nullable(
      Type.Integer({ description: 'A key, by the plan; null: no limit.' }),
    ),
  },
  STRICT,
)

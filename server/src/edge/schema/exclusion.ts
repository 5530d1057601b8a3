import { Type } from 'typebox'
import { EXCLUSIONS_MAX } from '../../ledger/exclusion.ts'

/** The longest field name, a colon, and the longest value that a field of an event can have. */
const LENGTH_MAX = 525

/** The `not` parameter, in a dashboard query or body. */
export const Exclusions = Type.Array(
  Type.String({ format: 'exclusion', maxLength: LENGTH_MAX, examples: ['category:billing'] }),
  {
    maxItems: EXCLUSIONS_MAX,
    description:
      'Values to leave out, each as the field’s name, a colon and the value: `category:billing`. The fields are category, action, projectId, actorId, actorEmail, resourceType and resourceId. An event without a value there is not left out.',
  },
)

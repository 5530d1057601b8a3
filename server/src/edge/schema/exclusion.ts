import { Type } from 'typebox'
import { EXCLUSIONS_MAX } from '../../ledger/exclusion.ts'
import { named } from './named.ts'

/** The longest field name, a colon, and the longest value that a field of an event can have. */
const LENGTH_MAX = 525

/** The `not` parameter, in a dashboard query or body. */
export const Exclusions = named(
  'Exclusions',
  Type.Array(
    Type.String({ format: 'exclusion', maxLength: LENGTH_MAX, examples: ['category:billing'] }),
    {
      maxItems: EXCLUSIONS_MAX,
      description:
        'Values to exclude, each written as `field:value`, such as `category:billing`. The fields are category, action, projectId, actorId, actorEmail, resourceType and resourceId. Events without a value in the field are included.',
    },
  ),
)

import { Type } from 'typebox'
import { VALUES_PER_FIELD_MAX } from '../../ledger/filter/event-filter.ts'
import { EXCLUDED_FIELDS, EXCLUSIONS_MAX } from '../../ledger/filter/exclusion.ts'
import { named } from './named.ts'

/** The longest field name, a colon, and the longest value that a field of an event can have. */
const LENGTH_MAX = 525

const ValueOfField = Type.String({
  format: 'exclusion',
  maxLength: LENGTH_MAX,
  examples: ['category:billing'],
})

/** The `anyOf` field of a dashboard body. A query repeats the field's parameter instead. */
export const AnyOf = named(
  'AnyOf',
  Type.Array(ValueOfField, {
    maxItems: VALUES_PER_FIELD_MAX * EXCLUDED_FIELDS.length,
    description: `Several values of one field or more, each written as \`field:value\`, such as \`category:billing\`. An event must have one of the values of each field. At most ${VALUES_PER_FIELD_MAX} values per field.`,
  }),
)

/** The `not` parameter, in a dashboard query or body. */
export const Exclusions = named(
  'Exclusions',
  Type.Array(ValueOfField, {
    maxItems: EXCLUSIONS_MAX,
    description:
      'Values to exclude, each written as `field:value`, such as `category:billing`. The fields are category, action, projectId, actorId, actorEmail, resourceType and resourceId. Events without a value in the field are included.',
  }),
)

import { Type } from 'typebox'
import {
  METADATA_PATH_LENGTH_MAX,
  METADATA_PATHS_MAX,
  METADATA_VALUE_LENGTH_MAX,
  METADATA_VALUES_MAX,
} from '../../ledger/search/metadata-term.ts'
import {
  COUNT_BY,
  type CountBy,
  METADATA_PREFIX,
} from '../../outlet/explorer/histogram/event-count-store.ts'
import { EXPLORER_SORTS } from '../../outlet/explorer/explore-events.ts'
import { FilterText } from './common.ts'
import { named } from './named.ts'

const MetadataValue = Type.String({ maxLength: METADATA_VALUE_LENGTH_MAX })
const MetadataValues = Type.Array(MetadataValue, { minItems: 1, maxItems: METADATA_VALUES_MAX })

const PATHS = `At most ${METADATA_PATHS_MAX} paths, ${METADATA_VALUES_MAX} values per path and ${METADATA_PATH_LENGTH_MAX} characters per path.`
const COMPARED =
  'A path is the keys that lead to a value, joined with dots, such as `request.id`; the items of an array have the path of the array. Values are compared as text, so `42` matches the number and the string.'

const HasMetadata = Type.Array(Type.String({ minLength: 1, maxLength: METADATA_PATH_LENGTH_MAX }), {
  maxItems: METADATA_PATHS_MAX,
  description:
    'Only events whose metadata has something at each of these paths, whatever it is, even null.',
})

const actorRole = Type.Optional({
  ...FilterText,
  description: 'Only events with this `actor.role`.',
})

/** The filters by metadata and role in a query. A parameter such as `metadata.ip` is part of `metadata`. */
export const SEARCH_PARAMETERS = {
  actorRole,
  metadata: Type.Optional(
    Type.Unsafe<Record<string, string[]>>(
      Type.Object(
        {},
        {
          additionalProperties: MetadataValues,
          maxProperties: METADATA_PATHS_MAX,
          description: `\`metadata.<path>=value\`, such as \`metadata.ip=185.220.101.3\`: only events that have this value in their metadata. Repeat a parameter for events with any of its values. ${COMPARED} ${PATHS}`,
        },
      ),
    ),
  ),
  hasMetadata: Type.Optional({
    ...HasMetadata,
    description: `Only events whose metadata has something at this path, whatever it is, even null. Repeat the parameter for events that have all of up to ${METADATA_PATHS_MAX} paths.`,
  }),
}

/** The search conditions as fields of a body. */
export const SEARCH_FIELDS = {
  actorRole,
  metadata: Type.Optional(
    named(
      'MetadataFilter',
      Type.Unsafe<Record<string, string | string[]>>(
        Type.Object(
          {},
          {
            additionalProperties: Type.Union([MetadataValue, MetadataValues]),
            maxProperties: METADATA_PATHS_MAX,
            description: `Only events that have these values in their metadata, by path: one value, or a list of which an event must have one. ${COMPARED} ${PATHS}`,
          },
        ),
      ),
    ),
  ),
  hasMetadata: Type.Optional(HasMetadata),
}

const TEXT_MATCHES =
  'Only events that contain this text in category, action, actor ID, actor email, resource type or resource ID, or that have it as a whole value in their metadata. The letters A to Z match in either case.'

export const SearchText = Type.String({
  minLength: 1,
  maxLength: 200,
  description: TEXT_MATCHES,
})

export const SortChoice = Type.Enum([...EXPLORER_SORTS], {
  description:
    'The order of the events: by their own time, or by when Annals received them. The last ones come first.',
})

/** A field, or `metadata.` and a path. */
export const CountByChoice = Type.Unsafe<CountBy>(
  Type.Union(
    [
      Type.Enum([...COUNT_BY]),
      Type.String({
        maxLength: METADATA_PREFIX.length + METADATA_PATH_LENGTH_MAX,
        pattern: String.raw`^metadata[.][\s\S]+$`,
      }),
    ],
    {
      description:
        'What to group by: a field, or the values at a path of the metadata, such as `metadata.request.id`.',
    },
  ),
)

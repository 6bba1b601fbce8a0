// Package cold answers questions about archived days straight from their files, without a restore. `docket logs`,
// `docket why`, where-is and the desk's API use it.
//
// [Days] reads archives. [Store] joins them with the table: a decision that is in both is that of the table. Each
// decision from an archive names its file, and each day that was not read completely is a [reader.Gap].
//
// It imports no SQL and no client of object storage.
package cold

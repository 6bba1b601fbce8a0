package shelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"docket/internal/history/archive"
)

var _ archive.Aging = (*bucket)(nil)

// standard is the class of an object of which the storage names none.
const standard = "STANDARD"

// dayInName finds the day in the name of a file. A manifest is small and read often, so it stays in the bucket's class.
var dayInName = regexp.MustCompile(`^[a-z_]+-(\d{4}-\d{2}-\d{2})-.*\.(parquet|jsonl\.gz)$`)

// class returns the storage class of a file now; empty: that of the bucket.
func (b *bucket) class(name string) string {
	found := dayInName.FindStringSubmatch(path.Base(name))
	if found == nil {
		return ""
	}
	day, err := archive.ParseDay(found[1])
	if err != nil {
		return ""
	}
	return b.classes.At(int(b.now().Sub(day.Next().Time) / (24 * time.Hour)))
}

// Age copies each file whose class is not that of its age onto itself with the new class. The storage does it in one
// request, and the file is whole before and after. A refusal is about one file. If the storage does not answer, is busy, or
// keeps no classes, all others would fail as well, so that ends it. A busy storage was asked again by then, with pauses.
func (b *bucket) Age(ctx context.Context, goOn func() error) (files int, err error) {
	if len(b.classes) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing if we stop early
	refused := &archive.AgingError{}
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if o.Err != nil {
			return files, failed(ctx, o.Err)
		}
		name := strings.TrimPrefix(o.Key, b.prefix)
		want := b.class(name)
		if want == "" || sameClass(o.StorageClass, want) {
			continue
		}
		if err := goOn(); err != nil {
			return files, err
		}
		switch err := b.reclass(ctx, name, want); {
		case err == nil:
			files++
		case errors.Is(err, fs.ErrNotExist): // it was removed since it was listed
		case ctx.Err() != nil:
			return files, ctx.Err()
		default:
			refused.Add(name, err)
			if lone := (*refusedError)(nil); !errors.As(err, &lone) {
				return files, refused
			}
		}
	}
	if refused.All > 0 && ctx.Err() == nil {
		return files, refused
	}
	return files, ctx.Err()
}

// refusedError says that the storage answered, and refused one file.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// answered is failed for a question about one file.
func answered(ctx context.Context, err error) error {
	said := minio.ErrorResponse{}
	if errors.As(err, &said) && said.Code != minio.NoSuchBucket && !busy(said) && ctx.Err() == nil {
		return &refusedError{failed(ctx, err)}
	}
	return failed(ctx, err)
}

func sameClass(is, want string) bool { return is == want || is == "" && want == standard }

// reclass gives a file another class. It looks afterwards: a storage that ignores classes would be asked each night.
func (b *bucket) reclass(ctx context.Context, name, class string) error {
	_, err := b.client.CopyObject(ctx, minio.CopyDestOptions{
		Bucket: b.name, Object: b.prefix + name, ContentType: kind(name), ReplaceMetadata: true, UserMetadata: map[string]string{"X-Amz-Storage-Class": class},
	}, minio.CopySrcOptions{Bucket: b.name, Object: b.prefix + name})
	if err != nil {
		return answered(ctx, err)
	}
	now, err := b.client.StatObject(ctx, b.name, b.prefix+name, minio.StatObjectOptions{})
	if err != nil {
		return answered(ctx, err)
	}
	if !sameClass(now.Metadata.Get("X-Amz-Storage-Class"), class) {
		return &archive.ShelfError{Err: errors.New("the object storage keeps no storage class " + class), Do: fmt.Sprintf("remove %s from DOCKET_ARCHIVE_CLASSES, or name a class that the storage has", class)}
	}
	return nil
}

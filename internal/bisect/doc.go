// Package bisect holds the search for the bad items of a set that cannot be
// written as a whole, for items of any type.
//
// It stays free of what the items are, of SQL, and of classes of errors: it
// asks one function to write a part and another whether an error can be the
// part's fault.
//
// # Cost
//
// Each ask is a transaction. To find k bad items among n takes, with the write
// of the whole set that came before, never more than
//
//	2k(log2(n/k)+1) + 2
//
// asks, and one confirmation for each bad item. The worst that can happen:
//
//	    n     k   asks   confirmations
//	  100     1     13      1
//	  500     1     17      1
//	  500     2     32      2
//	  500    10    122     10
//	  500    50    414     50
//	  500   500    998    500
//	 4096     1     24      1
//	 4096    64    894     64
//	10000     1     26      1
//
// A set of which nothing fails any more costs at most as much as one with a
// single bad item. Items that fail only in company are written alone, which
// can cost up to two asks and a confirmation for each item.
package bisect

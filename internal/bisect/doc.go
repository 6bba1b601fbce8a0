// Package bisect holds the search for the bad items of a set that cannot be
// written as a whole, for items of any type.
//
// It stays free of what the items are, of SQL, and of classes of errors: it
// asks one function to write a part, another whether an error can be the
// part's fault, and a third at which item the table stumbled.
//
// # Cost
//
// Each ask is a transaction. To find k bad items among n takes, with the write
// of the whole set that came before, never more than
//
//	2k(log2(n/k)+1) + 2
//
// asks, and one confirmation for each bad item. Where every error names the
// first bad item of its part, asks and confirmations together are never more
// than
//
//	k(log2(n/k)+4)
//
// and a single bad item takes 4 of them: all, all others, and that item twice.
// A hint that names a good item, or an item behind the first bad one, costs 3
// writes at most beyond the first bound, whatever else is hinted.
//
// Of the n items never more than 6n+2k are sent where every bad one is named,
// with the whole set and what is written among them, and never more than
// 11n+2k whatever the hints. The worst that can happen, without the write of
// the whole:
//
//	    n     k   asks   asks with hints   confirmations
//	  100     1     14                 2               1
//	  100     2     22                13               2
//	  100    10     75                47              10
//	  100    50    154               150              50
//	  100   100    105               101             100
//	  500     1     18                 2               1
//	  500     2     29                15               2
//	 4096     1     24                 2               1
//	10000     1     27                 2               1
//
// And what it took for bad items at random places of 10000, all writes
// counted:
//
//	    k   writes    sent   writes with hints   sent with hints   row by row
//	    0       16   20000                  16             20000        10000
//	    1       18   26898                   4             20001        10001
//	   10      142   45318                  55             39813        10010
//	  100     1031   46815                 539             40652        10100
//	 1000     6638   47196                4910             41560        11000
//	 5000    17589   43771               16900             42420        15000
//	10000    20013   39994               20002             39999        20000
//
// A set of which nothing fails any more costs at most as much as one with a
// single bad item. Items that fail only in company are written alone, which
// can cost up to two asks and a confirmation for each item.
package bisect

// Package bisect searches a set that cannot be written as a whole for its bad items, of any type.
//
// It knows nothing about the items, SQL or error classes. It calls one function to write a part, another to judge an
// error, and a third to tell at which item the table stopped.
//
// # Cost
//
// Each ask is a transaction. To find k bad items among n, including the earlier write of the whole set, it takes at
// most
//
//	2k(log2(n/k)+1) + 2
//
// asks, and one confirmation for each bad item. If every error names the first bad item of its part, asks and
// confirmations together are at most
//
//	k(log2(n/k)+4)
//
// A single bad item then takes 4: all, all others, and that item twice. A hint may name a good item, or an item
// behind the first bad one. It costs at most 3 writes beyond the first bound, whatever other hints say.
//
// Of the n items at most 6n+2k are sent if every bad one is named, including the whole set and all good items.
// It is at most 11n+2k for any hints. These are the worst cases, without the write of the whole set:
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
// These are measured for bad items at random places of 10000, with all writes counted:
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
// If no item of the set fails any more, it costs at most as much as a set with a single bad item. Items that fail
// only together are written alone, which can cost up to two asks and a confirmation for each.
package bisect

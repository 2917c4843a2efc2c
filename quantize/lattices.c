/*
 * lattices.c - the lattices of the IQ types of GGUF.
 *
 * Their points were found by search and follow no rule, so they are written
 * down: two characters for each point, each of which is half of its elements
 * as the digits of a number, the first the lowest: four of base three, or two
 * of base eight. The numbers count on from '#' and leave out the backslash.
 */
#include "config.h"

#include "quantize/lattices.h"

static const char points_iq1_s[] =
    "##%#'#)#+#-#0#5#7#;#=#B#H#J#L#T#Y#[#`#b#g#l#n#r#t#&$'$-$/$1$3$4$9$?$C$E$"
    "I$K$O$Q$S$U$V$^$d$f$h$p$#%%%)%+%0%5%7%;%=%B%H%N%S%W%Y%[%`%b%d%g%j%l%n%r%"
    "t%-&/&1&9&?&E&K&O&S&T&d&j&p&$'&'''('0'2'4'<'>'B'F'G'H'J'K'L'N'P'R'T'V'X'"
    "Z'd'g'i'k'm'o'p'q's'/(3(?(A(G(I(K(M(P(Q(U(W(^(d(f(j(#)%)))+)0)5)7);)=)B)"
    "H)L)T)Y)[)`)b)g)l)n)r)t)'*-*/*3*8*9*?*G*H*K*Q*S*W*d*f*h*j*p*#+%+)+++0+5+"
    "7+;+=+B+H+N+Q+T+Y+[+^+`+b+g+l+n+r+t+,,-,/,3,8,9,?,A,G,K,M,Q,S,T,W,d,f,h,"
    "m,p,$-&-(-*-,-.-0-2-6-8-<-B-F-G-H-I-J-K-L-N-P-T-]-e-g-m-o--./.1.9.>.C.E."
    "I.K.M.O.S.U.^.d.f.h.p.$/(/*///0/2/3/6/:/?/B/C/D/F/H/J/K/L/N/R/T/V/]/a/c/"
    "f/g/i/j/k/m/o/p/s/%0'0+0-0/0001030507090;0=0?0A0B0C0H0I0J0K0L0N0O0Q0S0T0"
    "U0W0Y0[0]0^0`0b0c0d0f0g0h0j0k0l0n0p0$1&1'1(10111214161:1>1@1A1B1D1F1H1K1"
    "L1M1N1Q1S1T1V1W1X1_1b1e1g1o1s1-21292?2A2C2E2G2K2M2O2P2Q2S2U2W2^2d2f2p2,3"
    ".303436393@3A3B3D3H3J3K3L3N3O3P3T3X3a3d3e3g3i3m3q3s3*41484:4A4C4E4G4I4K4"
    "M4Q4U4W4^4d4h4k4#5%5)5+505557595;5=5B5H5N5Q5T5Y5[5`5b5g5l5n5p5r5t5'6-6/6"
    "3696@6A6E6K6M6O6Q6S6T6U6^6c6h6j6p6$7)7+7-7075777;7=7B7H7L7N7T7Z7`7b7d7g7"
    "l7n7r7t7'8/8183898A8B8C8E8I8K8M8O8U8^8d8f8j8m8p8*90969<9>9B9D9H9J9K9N9R9"
    "T9V9a9c9f9g9i9k9m9o9q9s9':,:.:3:9:?:E:K:P:Q:W:]:_:c:k:#;%;);+;0;5;7;;;=;"
    "B;H;J;T;Y;[;`;b;l;n;r;t;*<-</<3<9<C<E<I<K<Q<S<U<W<^<c<h<j<o<p<#=%=)=+=5="
    "7=;===B=H=L=N=T=Y=[=`=b=g=l=n=r=t='>->1>9>E>I>K>M>O>Q>S>U>f>j>m>q>#?$?&?"
    "(?*?.?0?1?2?4?6?:?<?B?D?F?H?J?K?L?N?O?T?V?X?Z?]?_?c?e?g?l?m?n?'@-@/@1@9@"
    "?@I@K@O@S@W@a@f@p@$A0A3A<ABADAFAHAJAKALAQARATAVAXAZA_AaAcAeAgAlAmAsA$B%B"
    "'B+B-B/B0B1B3B5B9B=B?BABBBCBEBGBHBJBKBLBMBNBQBSBTBUBWB[B]B^B`BdBfBgBhBjB"
    "kBpBrBtB$C'C*C/C0C2C4C6C8C<C>C@CBCDCGCHCICKCLCNCRCTCVCZC^CbCfCgCmCoCqC'D"
    "-D0D4D9D@DEDGDKDMDQDSDUDWD^DdDfDhDjDpD$E'E(E+E,E/E0E2E6E8E:E>EBEFEHEIEJE"
    "KELENEPERETEUEXE_EaEeEgEhEiEmEoEqEsE1FAFCFEFKFMFOFSFWFfFpF$G&G'G(G*G.G0G"
    "4G6G8G<G>GBGDGHGJGKGLGNGTGVG_GaGgGiGlGmGqGsG'H)H*H+H-H/H0H1H2H3H5H9H:H;H"
    "=H?HAHBHCHEHGHHHIHJHKHLHMHNHOHQHSHTHUHWH[H^HdHfHgHhHjHlHpHtH$I(I.I0I4I6I"
    "8I@IBIFIHIJIKILINIRITI^IcIeIgIjIkIoI&J'J-J/J0J1J2J3J6J9J;J=J?JAJBJCJEJFJ"
    "GJHJJJKJLJMJNJOJQJRJSJTJUJWJYJ`JbJdJfJgJhJjJmJoJpJtJ$K%K&K'K(K*K,K-K.K/K"
    "0K1K3K4K6K8K9K:K<K>K?K@KAKBKCKDKEKGKHKIKJKKKLKMKNKOKPKQKSKTKUKVKWKXKZK]K"
    "^KaKbKcKdKfKgKhKiKjKmKoKpKqKsK#L$L%L&L(L)L*L-L/L0L2L3L5L6L7L8L9L:L;L<L?L"
    "BLCLDLELFLGLHLILJLKLLLMLNLOLQLSLTLWL[L^L_L`LaLbLdLgLkLnLpLqLrLsL&M'M(M*M"
    ",M0M2M6M=MBMDMFMHMJMKMLMMMNMPMRMSMTM[MaMcMeMgMiMmMsM$N%N'N+N-N/N0N1N3N9N"
    "?NANBNCNENGNHNINJNKNLNMNNNONQNSNTNUNWNZN^NaNdNfNgNhNiNjNpN&O)O0O4O5O9O:O"
    "<OBODOEOHOKOLOMONOROTOVOXOZObOeOgOhOiOkOmO'P/P1P3P9PAPGPKPLPMPOPQPSPUPWP"
    "ZPhPpP$Q&Q(Q*Q.Q0Q6Q7Q:Q<QBQEQHQKQLQNQTQUQXQ]QbQeQgQmQqQsQ-R1R3R>R?RCRKR"
    "LRMRPR^RdRhRpR-S.S0S1S4S6S:S<S>S@SBSDSFSHSJSKSLSNSOSPSRSTS]S^SaScSeSfSgS"
    "hSiSkSmSoSsS'T)T+T-T0T1T3TATBTCTETGTHTJTKTLTNTQTSTTTUTWT_TaTbTdTgThTjTkT"
    "nTpTqTrT%U*U0U5U:U;U<U>UBUDUFUHUJUKULUMUOUPUTUVUYU[U^UbUfUhUiUjUlUoUqUtU"
    "1V3V9V?VIVKVOVQVWV^VdViVqV$W&W,W0W6W8W:W<W>W?WBWCWDWHWJWKWLWNWPWTWXW[W]W"
    "bWgWmWoWpWsW-X1X2X?XAXEXGXKXMXOXSXTXWX_XfXiXkXqX#Y%Y)Y+Y5Y7Y;Y=YBYGYHYJY"
    "LYNYTYYY[Y`YbYgYlYnYrYtY'Z-Z/Z1Z3Z9Z?ZAZEZGZIZKZLZMZNZSZUZWZ^ZaZfZhZjZpZ"
    "#[%[)[+[0[5[7[;[=[H[J[N[T[Y[[[`[b[g[l[n[r[t[/]3]?]A]H]K]O]Q]S]W]f]j]$^*^"
    ".^0^4^:^<^>^?^B^D^H^J^K^L^N^O^T^U^V^X^Z^]^_^a^c^e^g^i^q^-_1_3_9_?_A_E_F_"
    "G_K_N_O_Q_U_X_^_d_k_o_#`%`)`+`0`5`7`;`=`?`B`H`J`N`T`W`Y`[```b`g`l`n`r`t`"
    "'a(a-a/a1a9a?aAaCaEaGaIaKaOaQaSa^ahajapa#b%b)b+b0b5b7b;b=bBbHbJbLbYb[b`b"
    "bbgblbnbrbtb'c-c1c2c3c9c?cCcEcKcMcOcWcXc^cdcfchcjcpc$d&d(d*d,d0d2d4d6d8d"
    ":d<d>dBdGdHdJdKdLdNdRdTd]d_dedgdidmdodqdsd'e-e/e3e9eAeCeEeGeIeKeMeUeWe^e"
    "fehese$f&f(f,f0f2f:f>fFfHfJfKfLfMfNfPfQfRfTf]f_fefffgfifmfsf#g'g)g+g,g-g"
    "/g0g1g3g6g9g<g=g?gAgBgCgEgGgHgIgJgKgLgMgNgOgQgSgTgUgWgZg^g`gdgegfggghgjg"
    "kglgngpgrgtg$h&h,h0h3h5h:h<hBhDhEhHhIhKhLhNhThVh[h]hahbhehfhghohqhsh'i1i"
    "3i9i?iCiGiIiKiLiOiSiTi^idihijipi&j(j*j,j.j0j2j4j5j6j8j:j>j@jBjDjFjHjJjKj"
    "LjNjRjTjUjXjZj]jcjejgjkjmjqj'k0k9kAkCkEkGkKkMkQk^kdkfkgkhk#l%l)l+l0l5l7l"
    ";l=lBlHlJlLlNlYl[l`lblglllnlrltl'm*m-m/m1m3m4mCmEmHmKmMmOmQmSm^mcmemhmjm"
    "%n)n+n,n3n7n;n=nBnHnLnNnTnYn[n`nbngnlnnnrntn3o9o?oAoGoJoKoMoOoQoToUoVoWo"
    "^o(p*p,p.p0p2p:p<p@pBpHpJpKpLpNpTpXpZp]p^p_papepgpip'q-q1q4q6q9qAqCqFqIq"
    "KqLqMqPqRq_qcqgqhqjqmqoqqq#r%r)r+r5r7r;r=rHrJrLrNrYr[r`rbrgrlrnrrrtr's/s"
    "3s6s9s?sGsKsOsQsUsWscshs#t%t)t+t5t7t;t=tHtJtLtYt[t`tbtgtltntrttt";

static const char points_iq2_xxs[] =
    "##%#'#)#+#-#/#5#7#;#=#?#A#G#M#Q#S#Y#[#b#n#$$&$,$0$>$]$i$#%%%7%[%$&&&,&6&"
    "8&>&@&D&P&Z&]&c&o&#'%')'5'C'W'Y'd'*(,(>(](o(#)')))/);)?)A)G)I)`)&*>*%+/+"
    "$,&,,,6,>,P,],c,g,#-)-5-G-O-Y-8.B.#/)/5/9/E/Y/20R0#111$2&2,2>2Z2#3'3l3H4"
    "#5%5+5A5Q5Y5[5<6D6#7%7$8&8,8>8L8#9?9S9c:);5;f;A=$>&>,>2>6>8>>>D>L>P>Z>]>"
    "c>#?5?Q?Y?^?$@,@D@L@V@#A)A5AYAjA.B8B#C$D&D,D>DBD#EMEQE[EBFcF#G)G-G3G5GYG"
    "`G&H@HoHdIcJeJ+K$LJL#M-M3MSM>N)O&P,P>PVP#QKQ2RPR#S'S,T.T]T@V#Y%Y+Y?Y[Y&Z"
    "2Z>Z-[$]&],]0]>]P]#^C^f^*_>_P_%`&a-b&c,c8c>cmc1dYdBe#f7fAfHgZi5j%lGl^l*m"
    "#n2oGr&s";

static const char points_iq2_xs[] =
    "##%#'#)#+#-#/#1#3#5#7#9#;#?#A#C#E#G#I#K#M#Q#S#Y#[#^#`#d#f#j#l#$$&$($*$,$"
    ".$0$2$4$6$8$>$@$B$D$H$J$P$V$Z$]$c$#%%%'%)%-%/%5%?%A%G%K%Y%b%$&&&(&*&,&.&"
    "0&2&6&8&>&@&B&D&H&J&L&P&Z&]&c&#'%''')'-'/'5'?'A'G'Q'Y'$(&(,(:(>(@(](#)%)"
    "')))+)-)/)5)9)?)A)G)M)Y)l)t)$*&*,*>*Z*a*#+5+;+h+l+$,&,(,*,,,.,0,2,6,8,>,"
    "@,B,D,H,J,P,X,Z,],c,#-%-'-)---/-5-?-A-G-Y-f-h-$.&.(.,.>.P.#/%/'/)/-///5/"
    "?/A/E/G/S/Y/$0&0,0>0#1/1E1$2&2,2.2>2J2_2#3'3U3H4s4#5%5'5)5+5-5/555?5A5G5"
    "Y5l5$6&6,6>6D6T6#777Y7r7$8&8,8<8>8#9?9I9j9$:4:q:#;);+;5;K;`;n;V<c<)=5=[="
    "`=b=$>&>(>*>,>.>0>2>6>8>>>@>B>D>F>H>J>P>T>Z>]>c>#?%?'?)?-?/?5???A?G?Y?^?"
    "n?$@&@,@.@<@>@#A%A'A)A-A/A3A5A?AAAGAYAfA$B&B,B8B>BkB#C+CACGC$D&D,D>DBDJD"
    "RD#E-EAEGEWE&F#G%G'G)G-G/G5G;G?GAGGGYG$H&H,H0H>H@H#IAItI$J&J,J6J>JPJZJmJ"
    "#K)KYK`K6LVLmL#M/M?MGMjM4N>N@N^O$P&P,P>PJPRP_PsP#Q8RFReR#S1S,T>TBToT$VXV"
    "9W(XJXRX#Y%Y'Y)Y-Y/Y5Y=Y?YAYGYYY[YrYtY$Z&Z(Z,Z>ZHZNZ#[5[Y[[[l[r[$]&],].]"
    "0]>]P]a]#^A^p^2_X_#`)`9`O`Y`[`r`(a7bYb`bhbrb$c&c,c>cLc]c#d7dSdLeae#f'fAf"
    "GfMf<gcgeg?hHiqiEj0kPk#l%l)l+l5l=lllHmNmqm#n%n)n=nYnln>ogoTqiq+r5r7r;rlr"
    "rr&s]s_s;t=tdttt";

static const char points_iq2_s[] =
    "##%#'#)#+#-#/#1#3#5#7#9#;#?#A#C#E#G#I#K#M#Q#S#U#W#Y#[#^#`#d#f#l#p#t#$$&$"
    "($*$,$.$0$2$6$8$>$@$B$D$H$J$L$N$P$T$V$Z$]$c$e$g$m$o$#%%%'%)%-%/%5%=%?%A%"
    "C%E%G%K%Y%^%b%f%n%$&&&(&*&,&.&0&2&6&8&:&<&>&@&B&D&F&H&J&L&N&P&R&T&Z&]&_&"
    "a&c&g&i&m&o&#'%''')'+'-'/'1'3'5'9';'?'A'C'E'G'I'K'M'Q'S'Y'['^'`'d'f'l'$("
    "&(((*(,(0(>(B(D(H(J(P(Z(](c(#)%)')))-)/)1)3)5)9)=)?)A)C)E)G)I)K)M)Q)S)Y)"
    "^)f)t)$*&*,*.*0*2*6*>*B*D*H*J*P*Z*c*#+-+/+7+;+=+G+j+$,&,(,*,,,.,0,2,6,8,"
    ":,>,@,B,D,H,J,L,N,P,R,T,V,Z,],_,c,g,i,m,o,#-%-'-)-+---/-1-3-5-7-9-;-?-A-"
    "C-E-G-I-K-M-Q-S-Y-[-^-`-d-f-$.&.*.,.0.6.8.>.B.H.J.Z.].c.#/%/'/)/-///1/3/"
    "5/9/;/?/A/C/E/G/I/K/M/Q/S/Y/[/^/`/d/f/l/$0&0(0*0,0.000206080>0@0B0D0H0J0"
    "P0Z0]0c0#1'1)1-1/151?1A1G1Y1t1$2&2(2*2,2022262>2@2B2D2H2J2P2Z2]2#3%3'3)3"
    "-3/353?3A3G3W3n3&4,4>4L4#5%5'5)5-5/515355595=5?5A5G5I5K5S5Y5b5f5t5$6&6,6"
    ".60666>6@6B6H6J6P6Z6]6c6#7+777;7=7A7G7`7b7r7$8&8(8*8,808286888>8@8B8D8H8"
    "J8P8Z8]8c8#9'9)9-9/959?9A9G9U9Y9$:&:,:>:N:#;';-;/;?;A;G;b;t;$<&<,<g<+=7="
    "S=`=b=$>&>(>*>,>.>0>2>4>6>8>:>>>@>B>D>F>H>J>L>N>P>R>T>Z>]>c>g>i>m>o>#?%?"
    "'?)?-?/?1?3?5?7?9???A?C?E?G?I?K?M?Q?S?Y?[?^?`?d?f?l?$@&@,@.@0@2@8@>@B@D@"
    "H@J@P@Z@]@#A%A'A)A+A-A/A1A3A5A7A9A;A?AAACAEAGAIAKAMAQASAYA[A^A`AdAfAlA$B"
    "&B(B*B,B.B0B2B6B8B>B@BBBDBHBJBPBXBZB]BcB#C%C'C)C-C/C5C?CACGCYCpC$D&D*D,D"
    ".D0D2D6D8D>D@DBDDDHDJDPD]DcD#E%E'E)E-E/E5E?EAEGEYEhE$F&F,F>F#G%G'G)G-G/G"
    "1G3G5G7G9G;G?GAGCGEGGGIGKGMGQGSGYG[G^G`GdGfG$H&H(H*H,H.H0H2H6H8H>H@HBHDH"
    "HHJHPHZH]HcH#I'I)I-I/I5I?IAIGIWIYI$J&J(J*J,J.J0J2J6J8J>J@JBJDJHJJJPJZJ]J"
    "cJ#K%K'K)K-K/K5K?KAKGKYK$L&L,L:L>L#M%M'M)M-M/M5M?MAMGMOMYM$N&N,N>N#O3O^O"
    "rO$P&P(P,P.P0P2P6P8P>PBPDPHPJPPP]PcP#Q%Q'Q)Q-Q/Q5Q?QAQGQYQjQ&R,R>RLRmR#S"
    "'S)S-S/S5S?SASGSYS$T&T,T>TFTVTeT#UfU$V&V,VTViV#W=W@XmX#Y%Y'Y)Y-Y/Y3Y5Y9Y"
    "?YAYGYIYKYMYQYYY^YdYfY$Z&Z*Z,Z.Z0Z2Z6Z8Z>Z@ZBZDZHZJZZZ]ZcZsZ#['[+[-[/[?["
    "A[G[$]&](]*],].]0]2]6]>]@]B]D]H]J]P]Z]]]c]#^%^'^)^-^/^5^?^A^G^Y^b^$_&_,_"
    "<_>_#`'`-`/`?`A`G`n`$a&a>aTa7bMbOb[bnb$c&c*c,c.c0c2c8c>c@cBcDcHcJcPcZc]c"
    "cc#d'd-d/d?dAdGdOd$e&e,e>eqe#f%f'f)f-f/f5f?fAfGfYfhf$g&g,g>gigmg#hChSh$i"
    "&i,i:i>isi#jEjIjck#l'l+l/l7l=l?lAlGlnltl>mTm%n+n7n;n=n[n`nbnrn$o&o,o>oao"
    "oo#p3pHq+r;rnrJs_s)t+t5t7t;t`ttt";

static const char points_iq3_xxs[] =
    "##%#'#,#.#2#3#5#<#E#_#a#$$&$+$-$4$8$;$=$D$O$[$#%%%'%,%3%5%<%>%B%L%R%a%$&"
    "*&+&-&8&[&.'B'G'R'_'a'$(*(=(M(@)W)+*/*1*F*T*$+&+++-+4+6+;+=+?+J+K+#,%,,,"
    "3,5,$-&-+---4-;-^-#.%.3.<.I.Y.$/(/K/3070I0]0(152C2#3%3,3.3335393<3E3$4&4"
    "(4+4-444;4V4Z4[4#5%5,5253555B5C5P5$6+6/6[6`6@7N7&8:8D8`8$:&:1:H:$;+;-;4;"
    "6;K;X;^;#<%<3<<<G<I<$=&=+=8=M=^=,>>>;?J?^?#@)@5@P@/AAAVA>BSB'C2C@CBCNCRC"
    "`D3EBECESEYE*FHF'GLGWG8HFH[H(J+J-J;J-KDK[K#L)L9LPL/M=M^M%NNN+O6O:O^O%P<P"
    "KQ7RER7SGSISWS4TTT2UWU;VAVGW(XMX>Y&Z4Z&[([*[+[=[M[9]C]-^H^M^#_0_>_S_4`D`"
    "#a%a7a;b";

static const char points_iq3_s[] =
    "##$#%#(#*#+#,#-#/#1#3#4#8#>#C#E#H#J#L#N#S#U#]#`#c##$$$%$'$+$,$0$3$6$:$<$"
    "@$G$T$X$^$#%$%(%*%+%.%1%4%8%;%?%E%H%J%L%N%[%_%&&,&0&3&5&<&>&A&G&K&M&Z&]&"
    "a&#'.'2'4'7'='C'F'L'['%('(3(5(9(>(D(H(J(Y(_()),).)<)M)])#*%*'*3*5*9*>*K*"
    "O*#+$+%+'+++,+.+0+2+3+5+<+?+A+O+Q+T+^+#,$,&,),+,/,4,;,>,D,K,M,[,b,#---0-"
    "2-3-7-=-C-F-P-S-^-$.'.*.+...4.:.;.?.D.U.[.&/(/-///</>/E/I/K/O/$0+0.040;0"
    "=0L03171:1G1I1$2&2+2-242@2D2U2[2#3$3&3(3*3+3-3/3134363:3;3=3D3F3H3K3M3Z3"
    "[3_3a3#4%4+4.4245484<4?4E4L4$5'5*54565;5B5D5N5R5]5`5#6%6(6,65676<6>6E6K6"
    "Y6$7*73767=7@7D7^7a7'8,858B8C8N8[8#9%9*949P9T9(:,:9:;:F:K:%;,;.;0;2;5;<;"
    ">;@;E;G;J;L;V;];$<&<(</<4<6<C<S<^<b<#=-=3===?=K=$>+>/>4>6>:>;>D>F>J>P>_>"
    "&?,?1?5?<?M?S?W?$@+@-@8@=@G@Q@_@1ADA$B&B3B5B@B#C'C-C3C7C:C=CDCKC[C%D*D,D"
    ".D5D;D@DFDLDPD$E&E+E0E4E>ECEREUE[E'F,F.F3F5F<F@F#G%G7GBGCG]G(H*H4HUH.I?I"
    "SI+J0J;JFJLJ%K+K/K5KCKGKJKMKYK`K$L&L(L-L4L=L^L#M,M6M;MAMNM%N*N+N:NGNLNXN"
    "_N$O'O3O=OIO-P9PLPNPEQ%R'R5R,S.S0S<S>SSS#T3T:TWT-U?UEUPUUU[U#V/V4VCV8WFW"
    "UW#X&X?XSX(YCY,Z.Z#['[*[3[5[A[C[O[U[%],]7]F]H]$^'^+^1^4^;^L^%_=_@_N_$`(`"
    ".`3`K`5aEa%b<b#c";

/* ---- The lattices ---- */

const struct lmq_lattice lmq_lattice_iq1_s = {points_iq1_s, 8, {-1, 0, 1}};
const struct lmq_lattice lmq_lattice_iq2_xxs = {
    points_iq2_xxs, 8, {8, 25, 43}};
const struct lmq_lattice lmq_lattice_iq2_xs = {points_iq2_xs, 8, {8, 25, 43}};
const struct lmq_lattice lmq_lattice_iq2_s = {points_iq2_s, 8, {8, 25, 43}};
const struct lmq_lattice lmq_lattice_iq3_xxs = {
    points_iq3_xxs, 4, {4, 12, 20, 28, 36, 44, 52, 62}};
const struct lmq_lattice lmq_lattice_iq3_s = {
    points_iq3_s, 4, {1, 3, 5, 7, 9, 11, 13, 15}};

/* The base is a constant where this is inlined: it is divided by often. */
static inline void
take_digits(const struct lmq_lattice *lattice, const char *point,
            unsigned base, unsigned n, int8_t *q)
{
    for (unsigned half = 0; half < 2; half++) {
        unsigned c = (unsigned char)point[half];
        unsigned digits = c - '#' - (c > '\\');
        for (unsigned i = 0; i < n; i++, digits /= base)
            *q++ = lattice->values[digits % base];
    }
}

void
lmq_lattice_point(const struct lmq_lattice *lattice, unsigned index, int8_t *q)
{
    const char *point = lattice->points + 2 * index;

    if (lattice->n == 8)
        take_digits(lattice, point, 3, 4, q);
    else
        take_digits(lattice, point, 8, 2, q);
}

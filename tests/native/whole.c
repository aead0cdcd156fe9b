/* whole.c - a program that does nothing, to link all of native/ with. */
int main(void)
{
	return 0;
}
